"""One wheel: what its name and its metadata say, and what its native code needs of the C library."""

from __future__ import annotations

import email.parser
import re
import zipfile
from dataclasses import dataclass
from email.message import Message
from pathlib import Path, PurePosixPath

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from edgerag.errors import BundleError

_GLIBC_SYMBOL = re.compile(rb"GLIBC_2\.(\d{1,3})")
_NATIVE = re.compile(r"\.so(\.[0-9.]+)?$")
_LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|authors|copyright)", re.IGNORECASE)
_LARGEST_TEXT = 2_000_000  # of a licence or metadata: more is none


@dataclass(frozen=True, slots=True)
class WheelName:
    """A wheel by its file's name alone."""

    path: Path
    name: str  # canonical: "pypdfium2", "llama-cpp-python"
    version: Version
    tags: frozenset[Tag]


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that was opened."""

    path: Path
    name: str
    version: Version
    tags: frozenset[Tag]
    requires: tuple[str, ...]  # requirements, as they stand there
    requires_python: str
    licence: str  # an SPDX expression, or what stands in its place; "" where nothing does
    licence_is_expression: bool
    homepage: str
    licence_files: tuple[tuple[str, bytes], ...]
    unpacked_bytes: int
    symbol_glibc: int | None  # the newest minor version of glibc that its native code names


def wheel_name(path: Path) -> WheelName | None:
    """None for a file that is no wheel by its name."""
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename:
        return None
    return WheelName(path, str(name), version, tags)


def wheels_in(folder: Path) -> list[WheelName]:
    """Raises OSError."""
    found = (wheel_name(path) for path in sorted(folder.glob("*.whl")) if path.is_file())
    return [wheel for wheel in found if wheel is not None]


def read_wheel(path: Path) -> Wheel:
    """Raises BundleError for a file that is no wheel."""
    named = wheel_name(path)
    if named is None:
        raise BundleError(f"{path} is no wheel.", remedy="Name a folder of wheels.")
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            folders = {info.filename.split("/")[0] for info in infos if ".dist-info/" in info.filename}
            own = [each for each in folders if canonicalize_name(each.split("-")[0]) == named.name]
            if len(own) != 1:
                raise BundleError(f"{path} is no wheel of {named.name}.", remedy="Get it again.")
            metadata = email.parser.BytesParser().parsebytes(_small(archive, f"{own[0]}/METADATA"))
            licences = tuple(
                (info.filename, _small(archive, info.filename))
                for info in infos
                if _is_licence(info.filename) and not info.is_dir() and info.file_size <= _LARGEST_TEXT
            )
            symbols = [
                int(found)
                for info in infos
                if _NATIVE.search(info.filename)
                for found in _GLIBC_SYMBOL.findall(archive.read(info))
            ]
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise BundleError(f"{path} is damaged: {error}.", remedy="Get it again.") from error
    licence, is_expression = _licence(metadata)
    return Wheel(
        path=path,
        name=named.name,
        version=named.version,
        tags=named.tags,
        requires=tuple(map(str, metadata.get_all("Requires-Dist", []))),
        requires_python=str(metadata.get("Requires-Python", "")),
        licence=licence,
        licence_is_expression=is_expression,
        homepage=_homepage(metadata),
        licence_files=licences,
        unpacked_bytes=sum(info.file_size for info in infos),
        symbol_glibc=max(symbols, default=None),
    )


def _small(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > _LARGEST_TEXT:
        raise ValueError(f"{name} is too large")
    return archive.read(name)


def _is_licence(name: str) -> bool:
    """Licence texts of the package, and of what it carries in itself."""
    path = PurePosixPath(name)
    inside = [part for part in path.parts[:-1] if part.endswith(".dist-info")]
    if inside and "licenses" in path.parts:
        return True
    return bool(_LICENCE_FILE.match(path.name)) and path.suffix.lower() in (
        "",
        ".txt",
        ".md",
        ".rst",
        ".apache",
        ".bsd",
        ".mit",
    )


def _licence(metadata: Message) -> tuple[str, bool]:
    expression = str(metadata.get("License-Expression", "")).strip()
    if expression:
        return expression, True
    classifiers = [
        str(each).rpartition(" :: ")[2]
        for each in metadata.get_all("Classifier", [])
        if str(each).startswith("License :: ") and not str(each).endswith("OSI Approved")
    ]
    text = str(metadata.get("License", "")).strip()
    # Some put the whole licence there, whose first line may be of the copyright.
    lines = text.splitlines()
    if classifiers and len(lines) != 1:
        return " AND ".join(classifiers), False
    return (lines[0].strip()[:200] if lines else ""), False


def _homepage(metadata: Message) -> str:
    urls = [str(each).partition(",")[2].strip() for each in metadata.get_all("Project-URL", [])]
    page = str(metadata.get("Home-page", "")).strip() or next(iter(urls), "")
    return page if page.startswith(("https://", "http://")) and " " not in page else ""
