"""The manifest of a bundle: each file with its size and SHA-256, and which of them a machine and Python need.

Wheels lie in packs, many in one compressed file: of each the manifest has name, size and SHA-256 as it is unpacked.
It is one JSON file, and what a signature signs. docs/bundle.md has it key by key. Promises: names of files are of a
narrow kind that leads nowhere else (no "..", no hidden ones, nothing that two file systems read differently), all
that refers to a file refers to one that is listed, and no byte of it changes unnoticed: it ends with its own digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .refused import Refused

NAME = "manifest.json"
SIGNATURE_NAME = "manifest.json.minisig"
FORMAT = "edgerag-bundle"
VERSION = 3
_OLDEST = 2  # the first with a digest of itself
_PACKED_SINCE = 3  # before, each wheel was a file of the bundle
LARGEST_BYTES = 16_000_000  # of 100,000 files; more is none of ours
_PIECE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]{0,199}")
_DEEPEST = 5
_SHA256 = re.compile(r"[0-9a-f]{64}")
# The last two lines of a manifest: the SHA-256 of all lines before them.
_END = re.compile(rb' "sha256": "([0-9a-f]{64})"\n}\n')
_END_BYTES = 64 + len(b' "sha256": ""\n}\n')
_MODEL_FILE = re.compile(r"models/[a-z0-9][a-z0-9._-]*\.gguf")
_MODEL_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_LIBRARY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LIBRARY_FILE = re.compile(r"libraries/[A-Za-z0-9_][A-Za-z0-9_.-]*\.edgerag")
_WHEEL = re.compile(r"wheels/[^/]+\.whl")
_PACK = re.compile(r"packs/[a-z0-9][a-z0-9_-]*\.xz")
_PLATFORM = re.compile(r"linux-[a-z0-9_]{1,20}")
_PYTHON = re.compile(r"[0-9]\.[0-9]{1,3}")
_EDGERAG_VERSION = re.compile(r"[0-9A-Za-z.+!-]{1,60}")


@dataclass(frozen=True, slots=True)
class File:
    name: str  # inside the bundle, with "/"
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Target:
    """One kind of machine with one Python, and what is installed there."""

    platform: str  # "linux-x86_64"
    python: str  # "3.11"
    glibc: tuple[int, int]  # the oldest that its wheels run with
    unpacked_bytes: int
    wheels: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"Python {self.python} on {self.platform}"


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    file: str
    shipped: bool  # in edgerag's own manifest of models: its place is known by its name


@dataclass(frozen=True, slots=True)
class Library:
    name: str
    file: str


@dataclass(frozen=True, slots=True)
class Pack:
    """A file of the bundle in which wheels lie one behind the other."""

    file: str
    wheels: tuple[File, ...]  # in this order, unpacked


@dataclass(frozen=True, slots=True)
class Manifest:
    edgerag: str  # its version
    pip: str  # the wheel that installs the others
    targets: tuple[Target, ...]
    models: tuple[Model, ...]
    libraries: tuple[Library, ...]
    files: tuple[File, ...]
    packs: tuple[Pack, ...] = ()  # none in a bundle of version 2

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def safe_name(name: str) -> bool:
    """Whether a file of a bundle may be called so."""
    pieces = name.split("/")
    return len(pieces) <= _DEEPEST and all(_PIECE.fullmatch(piece) and piece[-1] != "." for piece in pieces)


def written(manifest: Manifest) -> bytes:
    record = {
        "format": FORMAT,
        "version": VERSION,
        "edgerag": manifest.edgerag,
        "pip": manifest.pip,
        "targets": [
            {
                "platform": target.platform,
                "python": target.python,
                "glibc": f"{target.glibc[0]}.{target.glibc[1]}",
                "unpacked_bytes": target.unpacked_bytes,
                "wheels": list(target.wheels),
            }
            for target in manifest.targets
        ],
        "models": [{"name": each.name, "file": each.file, "shipped": each.shipped} for each in manifest.models],
        "libraries": [{"name": each.name, "file": each.file} for each in manifest.libraries],
        "packs": [{"file": pack.file, "wheels": _file_records(pack.wheels)} for pack in manifest.packs],
        "files": _file_records(manifest.files),
    }
    return with_digest(record)


def _file_records(files: Sequence[File]) -> list[dict[str, object]]:
    return [{"name": file.name, "size_bytes": file.size_bytes, "sha256": file.sha256} for file in files]


def with_digest(record: Mapping[str, object]) -> bytes:
    """``record``, which has at least one key, as the text of a manifest: JSON, its own digest at the end."""
    text = json.dumps(record, ensure_ascii=True, indent=1).encode("ascii")
    body = text.removesuffix(b"\n}") + b",\n"
    return body + f' "sha256": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode("ascii")


def read(data: bytes, where: str) -> Manifest:
    """Raises Refused for what is no manifest, one of another version, and one that is not as it was written."""
    try:
        record = _object(json.loads(data))
        if record.get("format") != FORMAT:
            raise ValueError("it is no manifest of a bundle")
        version = _whole(record["version"])
        if version > VERSION:
            raise Refused(
                f"{where} is a bundle of version {version}, and this program knows versions up to {VERSION}.",
                remedy="Use the install.py that lies in it.",
            )
        if version < _OLDEST:
            raise Refused(
                f"{where} is a bundle of version {version}, which has no digest of its {NAME}.",
                remedy="Use the install.py that lies in it, or have it made again.",
            )
        if not _is_whole(data):
            raise ValueError("it was changed, and is not what its own digest says")
        return _checked(_manifest(record, packed=version >= _PACKED_SINCE))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refused(
            f"{where}: its {NAME} cannot be used: {str(error)[:200]}.", remedy="Get the bundle again from who made it."
        ) from error


def _is_whole(data: bytes) -> bool:
    end = _END.fullmatch(data[-_END_BYTES:])
    return end is not None and hashlib.sha256(data[:-_END_BYTES]).hexdigest().encode("ascii") == end[1]


def _manifest(record: Mapping[str, object], *, packed: bool) -> Manifest:
    return Manifest(
        edgerag=_text(record["edgerag"]),
        pip=_text(record["pip"]),
        targets=tuple(_target(each) for each in _objects(record["targets"])),
        models=tuple(
            Model(_text(each["name"]), _text(each["file"]), each["shipped"] is True)
            for each in _objects(record["models"])
        ),
        libraries=tuple(Library(_text(each["name"]), _text(each["file"])) for each in _objects(record["libraries"])),
        files=_files(record["files"]),
        packs=tuple(
            Pack(_text(each["file"]), _files(each["wheels"])) for each in (_objects(record["packs"]) if packed else ())
        ),
    )


def _files(value: object) -> tuple[File, ...]:
    return tuple(
        File(_text(each["name"]), _whole(each["size_bytes"]), _text(each["sha256"])) for each in _objects(value)
    )


def _target(record: Mapping[str, object]) -> Target:
    major, _, minor = _text(record["glibc"]).partition(".")
    return Target(
        platform=_text(record["platform"]),
        python=_text(record["python"]),
        glibc=(int(major), int(minor)),
        unpacked_bytes=_whole(record["unpacked_bytes"]),
        wheels=tuple(_text(each) for each in _list(record["wheels"])),
    )


def _checked(manifest: Manifest) -> Manifest:
    """Raises ValueError where a name could do harm, or stands for no file."""
    listed: set[str] = set()
    folded: set[str] = {NAME, SIGNATURE_NAME}  # some file systems know no capitals
    packed = [wheel for pack in manifest.packs for wheel in pack.wheels]
    for file in (*manifest.files, *packed):
        if not safe_name(file.name):
            raise ValueError(f"{file.name[:200]!r} is no name for a file of a bundle")
        if file.name.lower() in folded:
            raise ValueError(f"{file.name} is there twice")
        if not _SHA256.fullmatch(file.sha256):
            raise ValueError(f"{file.name} has no SHA-256")
        listed.add(file.name)
        folded.add(file.name.lower())
    for name in folded:
        parts = name.split("/")
        for end in range(1, len(parts)):
            if "/".join(parts[:end]) in folded:
                raise ValueError(f"{'/'.join(parts[:end])} is a file and a folder")
    for target in manifest.targets:
        if not _PLATFORM.fullmatch(target.platform) or not _PYTHON.fullmatch(target.python):
            raise ValueError(f"{target.words[:200]!r} is no machine and Python")
    if not _EDGERAG_VERSION.fullmatch(manifest.edgerag):
        raise ValueError(f"{manifest.edgerag[:200]!r} is no version")
    kinds = [(_WHEEL, manifest.pip)]
    kinds += [(_WHEEL, wheel) for target in manifest.targets for wheel in target.wheels]
    kinds += [(_WHEEL, wheel.name) for wheel in packed]
    kinds += [(_PACK, pack.file) for pack in manifest.packs]
    kinds += [(_MODEL_FILE, model.file) for model in manifest.models]
    kinds += [(_LIBRARY_FILE, library.file) for library in manifest.libraries]
    for kind, name in kinds:
        if name not in listed or not kind.fullmatch(name):
            raise ValueError(f"{name[:200]!r} is named and not listed")
    for model in manifest.models:
        if not _MODEL_NAME.fullmatch(model.name):
            raise ValueError(f"{model.name[:200]!r} is no name of a model")
    for library in manifest.libraries:
        if not _LIBRARY_NAME.fullmatch(library.name):
            raise ValueError(f"{library.name[:200]!r} is no name of a library")
    return manifest


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError("an object is missing")
    return value


def _objects(value: object) -> list[Mapping[str, object]]:
    return [_object(each) for each in _list(value)]


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("a list is missing")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:80]!r} is no text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{str(value)[:80]!r} is no size")
    return value
