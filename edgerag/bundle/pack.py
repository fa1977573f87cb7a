"""Wheels are packed: those of one kind of machine into one compressed file, each as a ZIP file without compression.

The wheels of one package for several Pythons have most of their bytes in common (OpenBLAS, OpenSSL, Unicode's tables),
and a wheel that compresses each of its files hides that. Laid bare and side by side, what was there before costs next
to nothing. carried/packs.py takes them out again; docs/decisions/136 has the figures.
"""

from __future__ import annotations

import hashlib
import lzma
import shutil
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgerag.bundle.carried.manifest import File, Pack
from edgerag.bundle.wheel import Wheel
from edgerag.errors import BundleError

FOLDER = "packs"
_OF_SEVERAL = "any"
# So much of what came before is looked through for the same bytes: more than the largest wheel has, so that its like
# for the next Python is within it. Reading takes as much memory; see carried/packs.py.
_WINDOW_BYTES = 64 << 20
# Found by hash chains: what is alike is long, and xz's own search by trees takes four times as long for a tenth less.
_SEARCH = {"mode": lzma.MODE_FAST, "mf": lzma.MF_HC4, "nice_len": 128, "depth": 16}
_UNIX = 3  # how ZIP says whose the permissions of its members are
_READ_BYTES = 1 << 20


def make_packs(
    wheels: Iterable[Wheel],
    platforms: Mapping[str, frozenset[str]],
    scratch: Path,
    *,
    progress: Callable[[int, int], None],
) -> list[tuple[Pack, Path]]:
    """Each pack with the file in ``scratch`` that it is.

    ``platforms``: by the file name of each wheel the machines that it is for. Raises BundleError, OSError.
    """
    groups: dict[frozenset[str], list[Wheel]] = defaultdict(list)
    for wheel in wheels:
        groups[platforms[wheel.path.name]].append(wheel)
    whole = sum(wheel.unpacked_bytes for group in groups.values() for wheel in group)
    done = 0

    def forward(size_bytes: int) -> None:
        nonlocal done
        done += size_bytes
        progress(min(done, whole), whole)

    made = []
    for machines, group in sorted(groups.items(), key=lambda each: sorted(each[0])):
        name = next(iter(machines)) if len(machines) == 1 else _OF_SEVERAL
        file = scratch / f"{name}.xz"
        # Like beside like: a package's wheels for one Python after the other.
        in_order = sorted(group, key=lambda wheel: (wheel.name, wheel.version, wheel.path.name))
        packed = _pack(in_order, file, scratch, filters=_filters(machines), forward=forward)
        made.append((Pack(f"{FOLDER}/{file.name}", packed), file))
    return made


def _filters(machines: frozenset[str]) -> list[dict[str, Any]]:
    """The addresses in x86's calls are made absolute, and so alike. Of ARM's Python's module knows only 32 bits."""
    calls = [{"id": lzma.FILTER_X86}] if machines == {"linux-x86_64"} else []
    return [*calls, {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": _WINDOW_BYTES, **_SEARCH}]


def _pack(
    wheels: Sequence[Wheel],
    target: Path,
    scratch: Path,
    *,
    filters: list[dict[str, Any]],
    forward: Callable[[int], None],
) -> tuple[File, ...]:
    files = []
    with target.open("xb") as sink:
        encoder = lzma.LZMACompressor(lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=filters)
        for wheel in wheels:
            bare = scratch / "bare.whl"
            write_bare(wheel.path, bare)
            digest, size_bytes = hashlib.sha256(), 0
            with bare.open("rb") as stream:
                while piece := stream.read(_READ_BYTES):
                    digest.update(piece)
                    size_bytes += len(piece)
                    sink.write(encoder.compress(piece))
                    forward(len(piece))
            bare.unlink()
            files.append(File(f"wheels/{wheel.path.name}", size_bytes, digest.hexdigest()))
        sink.write(encoder.flush())
    return tuple(files)


def write_bare(wheel: Path, target: Path) -> None:
    """The same wheel, its members uncompressed. The same members make the same file. Raises BundleError, OSError."""
    try:
        with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as bare:
            for info in archive.infolist():
                member = zipfile.ZipInfo(info.filename, info.date_time)
                member.external_attr, member.create_system = info.external_attr, _UNIX
                member.file_size = info.file_size
                with archive.open(info) as source, bare.open(member, "w") as sink:
                    shutil.copyfileobj(source, sink, _READ_BYTES)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError) as error:
        raise BundleError(f"{wheel} is damaged: {error}.", remedy="Get it again.") from error
