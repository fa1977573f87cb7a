from __future__ import annotations

from pathlib import Path

import pytest

from edgerag.machine.mounts import file_system_of, is_remote, mount_points, shared_kind

MOUNTS = r"""22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
30 22 0:25 / /mnt/office rw - nfs4 server:/export rw
31 22 0:26 / /mnt/my\040stick rw - vfat /dev/sdb1 rw
32 30 0:27 / /mnt/office/inner rw shared:2 master:1 - tmpfs tmpfs rw
33 22 0:28 / /mnt/far rw - fuse.sshfs host:/ rw
34 22 8:9 / /mnt/over rw - ext4 /dev/sdc1 rw
35 22 0:31 / /mnt/over rw - cifs //server/share rw
damaged
36 22
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/home/me", "ext4"),
        ("/mnt/office", "nfs4"),
        ("/mnt/office/a/b", "nfs4"),
        ("/mnt/officer", "ext4"),
        ("/mnt/office/inner/x", "tmpfs"),
        ("/mnt/my stick/x", "vfat"),
        ("/mnt/far/x", "fuse.sshfs"),
        ("/mnt/over/x", "cifs"),
    ],
)
def test_the_innermost_mount_counts(path: str, kind: str) -> None:
    assert file_system_of(path, MOUNTS) == kind


def test_remote_ones_are_known(tmp_path: Path) -> None:
    place = tmp_path / "proc" / "self" / "mountinfo"
    assert not is_remote("/mnt/office", tmp_path)  # nothing is known
    place.parent.mkdir(parents=True)
    place.write_text(MOUNTS)
    assert [is_remote(path, tmp_path) for path in ("/nowhere/x", "/mnt/office/x", "/mnt/far", "/mnt/office/inner")] == [
        False, True, True, False
    ]  # fmt: skip


def test_every_mount_point_is_known_whatever_its_name(tmp_path: Path) -> None:
    place = tmp_path / "proc" / "self" / "mountinfo"
    assert mount_points(tmp_path) == frozenset()
    place.parent.mkdir(parents=True)
    place.write_bytes(
        MOUNTS.encode() + "37 22 8:9 / /mnt/Gerät\\040\udcff rw - ext4 /dev/x rw\n".encode("utf-8", "surrogateescape")
    )
    found = mount_points(tmp_path)
    assert {"/", "/mnt/my stick", "/mnt/over", "/mnt/Gerät \udcff"} <= found and len(found) == 7


@pytest.mark.parametrize(
    ("name", "kind", "shared", "remote"),
    [
        ("n\u00e1s", "nfs4", True, True),
        ("n\udce1s", "nfs4", True, True),  # Latin-1 bytes
        ("two\u2028lines", "cifs", True, True),
        ("vault", "fuse.gocryptfs", False, True),
        ("far", "fuse.sshfs", True, True),
        ("cluster", "ocfs2", True, True),
        ("disk", "ext4", False, False),
    ],
)
def test_what_other_machines_use_is_known_wherever_it_is_mounted(
    tmp_path: Path, name: str, kind: str, shared: bool, remote: bool
) -> None:
    place = tmp_path / "proc" / "self" / "mountinfo"
    place.parent.mkdir(parents=True)
    place.write_bytes(
        MOUNTS.encode() + f"37 22 8:9 / /mnt/{name} rw - {kind} x rw\n".encode("utf-8", "surrogateescape")
    )
    assert shared_kind(f"/mnt/{name}/x", tmp_path) == (kind if shared else "")
    assert is_remote(f"/mnt/{name}/x", tmp_path) == remote
