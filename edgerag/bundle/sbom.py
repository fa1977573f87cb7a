"""The bill of materials of a bundle, as CycloneDX 1.5 (JSON): for those who must say what they install.

Wheels are components with package URL, version, SHA-256 and licence, models and libraries with their checksums. The
same contents give the same document: it holds no time, and its serial number follows from what it lists.
https://cyclonedx.org/docs/1.5/json/
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from edgerag.bundle.closure import Closure
from edgerag.bundle.wheel import Wheel

NAME = "sbom.cdx.json"
# A name in which serial numbers are made (RFC 9562, version 5); it is looked up nowhere.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/edgerag-bundle")


@dataclass(frozen=True, slots=True)
class Carried:
    """A model or a library, as a component."""

    name: str
    kind: str  # "machine-learning-model" or "data"
    file: str
    sha256: str
    licence: str = ""
    source: str = ""


def sbom(closures: Sequence[Closure], carried: Iterable[Carried], *, hashes: Mapping[str, str], version: str) -> bytes:
    """``hashes``: the SHA-256 of each wheel by its file's name."""
    wheels = {wheel.path.name: wheel for closure in closures for wheel in closure.wheels}
    components = [_wheel(wheel, hashes[name]) for name, wheel in sorted(wheels.items())]
    components += [_carried(each) for each in sorted(carried, key=lambda each: each.file)]
    top = {"type": "application", "bom-ref": "bundle", "name": "edgerag bundle", "version": version}
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": top},
        "components": components,
        "dependencies": _dependencies(closures, [str(each["bom-ref"]) for each in components]),
    }
    text = json.dumps(document, sort_keys=True)
    document = {**document, "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, text)}"}
    return json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8") + b"\n"


def _wheel(wheel: Wheel, sha256: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{wheel.name}@{quote(str(wheel.version), safe='')}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _reference(wheel),
        "name": wheel.name,
        "version": str(wheel.version),
        "purl": f"{purl}?file_name={quote(wheel.path.name, safe='')}",
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "properties": [{"name": "edgerag:file", "value": f"wheels/{wheel.path.name}"}],
    }
    if wheel.licence:
        named = {"license": {"name": wheel.licence}}
        component["licenses"] = [{"expression": wheel.licence} if wheel.licence_is_expression else named]
    if wheel.homepage:
        component["externalReferences"] = [{"type": "website", "url": wheel.homepage}]
    return component


def _carried(each: Carried) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": each.kind,
        "bom-ref": each.file,
        "name": each.name,
        "hashes": [{"alg": "SHA-256", "content": each.sha256}],
        "properties": [{"name": "edgerag:file", "value": each.file}],
    }
    if each.licence:
        component["licenses"] = [{"license": {"name": each.licence}}]
    if each.source.startswith("https://"):
        component["externalReferences"] = [{"type": "distribution", "url": each.source}]
    return component


def _dependencies(closures: Sequence[Closure], references: Sequence[str]) -> list[dict[str, Any]]:
    needs: dict[str, set[str]] = {reference: set() for reference in references}
    for closure in closures:
        by_name = {wheel.name: wheel for wheel in closure.wheels}
        for name, required in closure.requires.items():
            needs[_reference(by_name[name])] |= {_reference(by_name[each]) for each in required if each in by_name}
    top = {"ref": "bundle", "dependsOn": list(references)}
    return [top, *({"ref": reference, "dependsOn": sorted(needs[reference])} for reference in references)]


def _reference(wheel: Wheel) -> str:
    return f"wheels/{wheel.path.name}"
