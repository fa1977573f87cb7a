"""Trees of /proc and /sys as real machines show them, written from short descriptions.

Each function writes one machine under a folder and returns that folder, for readers that take a root.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1_MOUNTS = (
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
)
GIB_KB = 2**20


def put(system: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).write_text(text + "\n")
    return system


def listed(cpus: Iterable[int]) -> str:
    return ",".join(map(str, cpus))


def base(system: Path, online: str, affinity: str = "") -> Path:
    """The lists of CPUs, and a process of the root group."""
    return put(
        system,
        {
            f"{CPU}/online": online,
            "proc/self/status": f"Name:\tpython\nCpus_allowed:\tff\nCpus_allowed_list:\t{affinity or online}",
            "proc/self/cgroup": "0::/",
            "proc/self/mountinfo": V2_MOUNT,
        },
    )


def cores(system: Path, *groups: tuple[int, ...]) -> Path:
    """Physical cores as tuples of logical CPUs."""
    return put(system, {f"{CPU}/cpu{cpu}/topology/core_cpus_list": listed(g) for g in groups for cpu in g})


def each(system: Path, cpus: Iterable[int], files: dict[str, str]) -> Path:
    """The same files in the folder of each CPU."""
    return put(system, {f"{CPU}/cpu{cpu}/{name}": text for cpu in cpus for name, text in files.items()})


def caches(system: Path, cpus: tuple[int, ...], *levels: tuple[int, str, str, tuple[int, ...] | None]) -> Path:
    """(level, type, size, sharers) for each of ``cpus``; sharers None: the CPU alone."""
    for cpu in cpus:
        for index, (level, kind, size, sharers) in enumerate(levels):
            folder = f"{CPU}/cpu{cpu}/cache/index{index}"
            shared = listed(sharers or (cpu,))
            files = {"level": str(level), "type": kind, "size": size, "shared_cpu_list": shared}
            put(system, {f"{folder}/{name}": text for name, text in files.items()})
    return system


def group_v2(system: Path, own: str, files: dict[str, str]) -> Path:
    """The process's group, and files by their path below the mount."""
    put(system, {"proc/self/cgroup": f"0::{own}", "proc/self/mountinfo": V2_MOUNT})
    return put(system, {f"sys/fs/cgroup/{name}": text for name, text in files.items()})


# ---------------------------------------------------------------- machines


def hybrid_laptop(system: Path) -> Path:
    """Intel Core i7-1260P: 4 performance cores with two threads each, 8 efficiency cores."""
    base(system, "0-15")
    fast, slow = [(0, 1), (2, 3), (4, 5), (6, 7)], [(cpu,) for cpu in range(8, 16)]
    cores(system, *fast, *slow)
    put(system, {"sys/devices/cpu_core/cpus": "0-7", "sys/devices/cpu_atom/cpus": "8-15"})
    each(system, range(8), {"cpufreq/cpuinfo_max_freq": "4700000", "cpufreq/scaling_max_freq": "4700000"})
    each(system, range(8, 16), {"cpufreq/cpuinfo_max_freq": "3400000", "cpufreq/scaling_max_freq": "3400000"})
    each(system, range(16), {"cpufreq/scaling_driver": "intel_pstate", "cpufreq/scaling_governor": "powersave"})
    for pair in fast:
        levels = ((1, "Data", "48K", pair), (1, "Instruction", "32K", pair), (2, "Unified", "1280K", pair))
        caches(system, pair, *levels, (3, "Unified", "18432K", tuple(range(16))))
    for four in ((8, 9, 10, 11), (12, 13, 14, 15)):
        small = ((1, "Data", "32K", None), (1, "Instruction", "64K", None), (2, "Unified", "2048K", four))
        caches(system, four, *small, (3, "Unified", "18432K", tuple(range(16))))
    return nodes(system, {0: "0-15"}, memory_kb=16 * GIB_KB)


def nodes(system: Path, cpus: dict[int, str], memory_kb: int, far: int = 20) -> Path:
    put(system, {f"{NODE}/online": listed(cpus)})
    for number, text in cpus.items():
        distances = " ".join("10" if other == number else str(far) for other in cpus)
        meminfo = f"Node {number} MemTotal:       {memory_kb} kB\nNode {number} MemFree:        {memory_kb // 2} kB"
        folder = f"{NODE}/node{number}"
        put(system, {f"{folder}/cpulist": text, f"{folder}/distance": distances, f"{folder}/meminfo": meminfo})
    return system


def dual_socket_server(system: Path) -> Path:
    """Two sockets of 16 cores with two threads each: siblings are 32 apart; one node of 64 GiB per socket."""
    base(system, "0-63")
    cores(system, *((cpu, cpu + 32) for cpu in range(32)))
    for first in (0, 16):
        socket = (*range(first, first + 16), *range(first + 32, first + 48))
        caches(system, socket, (3, "Unified", "24576K", socket))
    return nodes(system, {0: "0-15,32-47", 1: "16-31,48-63"}, memory_kb=64 * GIB_KB, far=21)


def raspberry_pi_5(system: Path) -> Path:
    """Four Cortex-A76 that are alike."""
    base(system, "0-3")
    cores(system, (0,), (1,), (2,), (3,))
    each(
        system,
        range(4),
        {
            "cpu_capacity": "1024",
            "cpufreq/cpuinfo_max_freq": "2400000",
            "cpufreq/scaling_max_freq": "2400000",
            "cpufreq/scaling_driver": "cpufreq-dt",
            "cpufreq/scaling_governor": "ondemand",
        },
    )
    shared = (3, "Unified", "2048K", (0, 1, 2, 3))
    caches(system, (0, 1, 2, 3), (1, "Data", "64K", None), (2, "Unified", "512K", None), shared)
    cpu = "processor\t: {0}\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd evtstrm aes crc32 asimddp cpuid\n"
    cpu += "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x4\nCPU part\t: 0xd0b\nCPU revision\t: 1\n"
    text = "\n".join(cpu.format(number) for number in range(4)) + "\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0"
    return put(system, {"proc/cpuinfo": text})


def big_little_board(system: Path) -> Path:
    """RK3588: four Cortex-A55 first, then four Cortex-A76."""
    base(system, "0-7")
    cores(system, *((cpu,) for cpu in range(8)))
    each(system, range(4), {"cpu_capacity": "414"})
    each(system, range(4, 8), {"cpu_capacity": "1024"})
    parts = [("0xd05", cpu) for cpu in range(4)] + [("0xd0b", cpu) for cpu in range(4, 8)]
    text = "\n".join(
        f"processor\t: {cpu}\nFeatures\t: fp asimd asimddp\nCPU implementer\t: 0x41\nCPU part\t: {part}\n"
        for part, cpu in parts
    )
    return put(system, {"proc/cpuinfo": text})


def container(system: Path) -> Path:
    """Eight CPUs, of which a nested group of version 2 may use a core and a half's worth of time."""
    base(system, "0-7")
    cores(system, *((cpu,) for cpu in range(8)))
    files = {"pods.slice/cpu.max": "150000 100000", "pods.slice/pod/cpu.max": "max 100000"}
    files |= {"pods.slice/pod/app/cpu.max": "400000 100000", "cpuset.cpus.effective": "0-7"}
    return group_v2(system, "/pods.slice/pod/app", files)


def container_v1(system: Path) -> Path:
    """Eight CPUs, quota of three cores in a group of version 1 whose own group has none."""
    base(system, "0-7")
    cores(system, *((cpu,) for cpu in range(8)))
    put(
        system,
        {"proc/self/cgroup": "4:cpu,cpuacct:/docker/app\n3:cpuset:/docker/app", "proc/self/mountinfo": V1_MOUNTS},
    )
    folder = "sys/fs/cgroup/cpu,cpuacct/docker"
    put(system, {f"{folder}/cpu.cfs_quota_us": "300000", f"{folder}/cpu.cfs_period_us": "100000"})
    put(system, {f"{folder}/app/cpu.cfs_quota_us": "-1", f"{folder}/app/cpu.cfs_period_us": "100000"})
    return put(system, {"sys/fs/cgroup/cpuset/docker/app/cpuset.effective_cpus": "0-7"})


def cpuset_of_two(system: Path) -> Path:
    """Eight CPUs, four cores; the group may use CPUs 2 and 3, which are one core each."""
    base(system, "0-7")
    cores(system, (0, 4), (1, 5), (2, 6), (3, 7))
    return group_v2(system, "/app", {"app/cpuset.cpus.effective": "2-3", "cpuset.cpus.effective": "0-7"})


def bare_virtual_machine(system: Path) -> Path:
    """Two CPUs, and nothing said of caches, frequencies, siblings or nodes."""
    return base(system, "0-1")


def offline_cpus(system: Path) -> Path:
    """Four cores with two threads; siblings switched off (nosmt), and the affinity mask still names them."""
    base(system, "0-3", affinity="0-7")
    return cores(system, (0,), (1,), (2,), (3,))
