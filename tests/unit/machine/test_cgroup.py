"""Control groups as the kernel's files describe them; each tree is a folder of such files."""

from __future__ import annotations

from pathlib import Path

from edgerag.machine import cgroup

V1_MOUNT = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
UNLIMITED_V1 = "9223372036854771712\n"


def put(system: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).write_text(text)
    return system


def v2(system: Path, own: str, groups: dict[str, tuple[str, str, str]]) -> Path:
    files = {"proc/self/cgroup": f"0::{own}\n", "proc/self/mountinfo": V2_MOUNT}
    for group, (limit, used, stat) in groups.items():
        folder = f"sys/fs/cgroup/{group}"
        files |= {f"{folder}/memory.max": limit, f"{folder}/memory.current": used, f"{folder}/memory.stat": stat}
    return put(system, files)


def v1(system: Path, own: str, groups: dict[str, tuple[str, str, str]], mount: str = V1_MOUNT) -> Path:
    files = {"proc/self/cgroup": f"5:devices:/\n4:cpu,memory:{own}\n0::/\n", "proc/self/mountinfo": mount}
    for group, (limit, used, stat) in groups.items():
        folder = f"sys/fs/cgroup/memory/{group}"
        files[f"{folder}/memory.limit_in_bytes"] = limit
        files[f"{folder}/memory.usage_in_bytes"] = used
        files[f"{folder}/memory.stat"] = stat
    return put(system, files)


def test_version_2(tmp_path: Path) -> None:
    v2(tmp_path, "/user/app", {"user/app": ("500000000\n", "400000000\n", "anon 1\ninactive_file 150000000\n")})
    group = cgroup.tightest_memory(tmp_path)
    assert group is not None
    assert (group.limit_bytes, group.used_bytes, group.room_bytes) == (500_000_000, 400_000_000, 250_000_000)


def test_version_1_counts_the_groups_below(tmp_path: Path) -> None:
    stat = "inactive_file 7\ntotal_inactive_file 100000000\ntotal_active_file 60000000\ntotal_mapped_file 50000000\n"
    v1(tmp_path, "/app", {"": (UNLIMITED_V1, "1\n", ""), "app": ("300000000\n", "290000000\n", stat)})
    group = cgroup.tightest_memory(tmp_path)
    assert group is not None
    assert group.reclaimable_bytes == 110_000_000, "cached and not mapped by anyone"
    assert group.room_bytes == 120_000_000


def test_of_nested_groups_the_tightest_binds(tmp_path: Path) -> None:
    groups = {"a": ("400\n", "390\n", ""), "a/b": ("max\n", "50\n", ""), "a/b/c": ("300\n", "20\n", "")}
    v2(tmp_path, "/a/b/c", groups)
    group = cgroup.tightest_memory(tmp_path)
    assert group is not None
    assert (group.folder.name, group.room_bytes) == ("a", 10), "the group above is nearly full, by others"
    assert min(each.limit_bytes for each in cgroup.limited_groups(tmp_path)) == 300


def test_no_limit(tmp_path: Path) -> None:
    v2(tmp_path / "two", "/app", {"app": ("max\n", "400\n", "")})
    v1(tmp_path / "one", "/app", {"app": (UNLIMITED_V1, "400\n", "")})
    for system in (tmp_path / "two", tmp_path / "one", tmp_path / "absent"):
        assert cgroup.tightest_memory(system) is None


def test_a_container_that_sees_only_its_own_part_of_the_tree(tmp_path: Path) -> None:
    mount = "35 31 0:32 /docker/1234 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    v1(tmp_path / "a", "/docker/1234", {"": ("1000\n", "900\n", "")}, mount)
    v1(tmp_path / "b", "/docker/1234/inner", {"": ("1000\n", "100\n", ""), "inner": ("500\n", "450\n", "")}, mount)
    v1(tmp_path / "c", "/another/name", {"": ("1000\n", "900\n", "")})
    rooms = [cgroup.tightest_memory(tmp_path / name) for name in "abc"]
    assert [room.room_bytes if room else None for room in rooms] == [100, 50, 100]


def test_damaged_files_are_no_limit(tmp_path: Path) -> None:
    put(tmp_path, {"proc/self/cgroup": "\n::\nnonsense", "proc/self/mountinfo": "1 2 - \n - \nx"})
    assert cgroup.memory_folders(tmp_path) == []
    assert cgroup.parse_bytes("-5") is None
