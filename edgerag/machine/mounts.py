"""Which file system a path lies on, as far as it decides whether the kernel tells what happens there, and whether the
machines that share it can share memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from edgerag.types.choices import JournalMode

# Of other machines, of a cluster, or of the other side of a virtual machine.
_SHARED = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "ceph", "glusterfs", "lustre", "beegfs", "9p", "virtiofs"}
    | {"vboxsf", "vmhgfs", "prl_fs", "drvfs", "davfs", "ocfs2", "gfs2", "gpfs", "pvfs2", "panfs", "acfs", "coda"}
    | {f"fuse.{name}" for name in ("sshfs", "glusterfs", "ceph", "ceph-fuse", "rclone", "s3fs", "juicefs", "smbnetfs")}
    | {
        f"fuse.{name}"
        for name in ("vmhgfs-fuse", "davfs", "curlftpfs", "gvfsd-fuse", "lizardfs", "mfsmount", "orangefs")
    }
)
_ESCAPE = re.compile(r"\\([0-7]{3})")


def is_remote(path: str, system: Path = Path("/")) -> bool:
    """True where the file system under ``path`` may change without a word to this kernel; not known: False. A program
    makes those of FUSE, which may change anything."""
    kind = _kind_of(path, system)
    return kind in _SHARED or kind == "fuse" or kind.startswith("fuse.")


def shared_kind(path: str, system: Path = Path("/")) -> str:
    """``nfs4``, ``cifs``, ... where other machines may use the file system under ``path`` at the same time; else ""."""
    kind = _kind_of(path, system)
    return kind if kind in _SHARED else ""


def journal_for(database: Path) -> JournalMode:
    """How SQLite is to keep transactions of a file there. Its write-ahead log needs memory that all processes share,
    and those on two machines share none (sqlite.org/wal.html): where a disk is shared, the older way, with locks."""
    return "TRUNCATE" if shared_kind(str(database.parent)) else "WAL"


def _kind_of(path: str, system: Path) -> str:
    return file_system_of(os.path.realpath(path), _mount_lines(system))


def mount_points(system: Path = Path("/")) -> frozenset[str]:
    """Every folder on which a file system is mounted, by its real path; none where that cannot be told."""
    return frozenset(point for point, _ in _mounts(_mount_lines(system)))


def _mount_lines(system: Path) -> str:
    """The kernel's table of mounts; "" where it cannot be had."""
    try:
        return os.fsdecode((system / "proc" / "self" / "mountinfo").read_bytes())  # paths need not be ASCII, nor UTF-8
    except OSError:
        return ""


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
    for line in lines.split("\n"):  # and no other end of a line: a path may hold those
        front, separator, back = line.partition(" - ")
        fields = front.split(" ")
        if separator and len(fields) >= 5:
            yield _ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[4]), back.split(" ")[0]
