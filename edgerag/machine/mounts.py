"""Which file system a path lies on, as far as it decides whether the kernel tells what happens there, and whether the
machines that share it can share memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from edgerag.machine.kernel_files import read_text

# What other machines, or the other side of a virtual one, change there is not told here.
_REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "ceph", "glusterfs", "lustre", "beegfs", "9p", "virtiofs"}
    | {"vboxsf", "vmhgfs", "prl_fs", "drvfs", "fuse", "davfs"}
)
_ESCAPE = re.compile(r"\\([0-7]{3})")


def is_remote(path: str, system: Path = Path("/")) -> bool:
    """True where the file system under ``path`` may change without a word to this kernel; not known: False."""
    return bool(remote_kind(path, system))


def remote_kind(path: str, system: Path = Path("/")) -> str:
    """``nfs4``, ``cifs``, ... where the file system under ``path`` is shared with another machine; else ""."""
    kind = file_system_of(os.path.realpath(path), read_text(system / "proc" / "self" / "mountinfo") or "")
    return kind if kind in _REMOTE or kind.startswith("fuse.") else ""


def journal_for(database: Path) -> Literal["WAL", "TRUNCATE"]:
    """How SQLite is to keep transactions of a file there. Its write-ahead log needs memory that all processes share,
    and those on two machines share none (sqlite.org/wal.html): where a disk is shared, the older way, with locks."""
    return "TRUNCATE" if is_remote(str(database.parent)) else "WAL"


def mount_points(system: Path = Path("/")) -> frozenset[str]:
    """Every folder on which a file system is mounted, by its real path; none where that cannot be told."""
    try:
        lines = (system / "proc" / "self" / "mountinfo").read_bytes()
    except OSError:
        return frozenset()
    return frozenset(point for point, _ in _mounts(os.fsdecode(lines)))  # paths need not be ASCII, nor UTF-8


def file_system_of(path: str, mounts: str) -> str:
    """The type of the innermost mount above ``path``, out of the lines of ``mountinfo``; "" where none fits."""
    best, kind = -1, ""
    for point, its_kind in _mounts(mounts):
        holds = path == point or path.startswith(point.rstrip("/") + "/")
        if holds and len(point) >= best:  # of two at one place the later one lies on top
            best, kind = len(point), its_kind
    return kind


def _mounts(lines: str) -> Iterator[tuple[str, str]]:
    """Each place where something is mounted, and its type. Format: proc(5), mountinfo."""
    for line in lines.splitlines():
        front, separator, back = line.partition(" - ")
        fields = front.split(" ")
        if separator and len(fields) >= 5:
            yield _ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[4]), back.split(" ")[0]
