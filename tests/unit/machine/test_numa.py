"""Memory policies: the real calls on this machine's node 0, and which are made on which machine."""

from __future__ import annotations

import ctypes
import errno
import mmap
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from unit.machine import fixtures

from edgerag.machine import numa
from edgerag.machine.numa import Policy, bind_memory, place_range, read_policy, set_policy


@pytest.fixture
def calls() -> Iterator[None]:
    """Where the kernel answers; the thread's policy is put back."""
    if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("the calls are known for Linux on x86_64 and aarch64")
    try:
        before = read_policy()
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSYS):
            raise
        pytest.skip(str(error))
    yield
    set_policy(before)


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return fixtures.dual_socket_server(tmp_path)


@pytest.mark.usefixtures("calls")
def test_a_policy_is_set_and_read_back() -> None:
    for mode in (1, 3):
        set_policy(Policy(mode, frozenset({0})))
        assert read_policy() == Policy(mode, frozenset({0}))
    set_policy(Policy(0, frozenset()))
    assert read_policy() == Policy(0, frozenset())


@pytest.mark.usefixtures("calls")
def test_a_refusal_names_the_call() -> None:
    with pytest.raises(OSError, match="set_mempolicy was refused: Invalid argument"):
        set_policy(Policy(1, frozenset({1000})))


@pytest.mark.usefixtures("calls")
def test_memory_is_bound_inside_and_free_afterwards(server: Path) -> None:
    before = read_policy()
    with bind_memory(0, system=server) as limitation:
        assert limitation == ""
        assert read_policy() == Policy(1, frozenset({0}))
    assert read_policy() == before


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("node", "words"), [(900, "set_mempolicy was refused"), (7, "there is no NUMA node 7"), (5000, "no NUMA node 5000")]
)
def test_a_node_that_is_not_here_is_told_and_nothing_breaks(tmp_path: Path, node: int, words: str) -> None:
    system = fixtures.nodes(tmp_path, {0: "0", 900: "1"}, memory_kb=fixtures.GIB_KB)
    before = read_policy()
    with bind_memory(node, system=system) as limitation:
        assert words in limitation
        assert read_policy() == before
    assert read_policy() == before


@pytest.mark.usefixtures("calls")
def test_a_stretch_of_memory_is_placed(server: Path) -> None:
    memory = mmap.mmap(-1, 16 * mmap.PAGESIZE)
    memory[:] = b"a" * len(memory)
    anchor = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(anchor)
    assert place_range(address + 100, 3 * mmap.PAGESIZE, 0, system=server) == ""
    far = fixtures.nodes(server / "far", {0: "0", 900: "1"}, memory_kb=fixtures.GIB_KB)
    assert "mbind was refused" in place_range(address, len(memory), 900, system=far)
    assert memory[:] == b"a" * len(memory)


@pytest.mark.parametrize("placement", ["none", "interleave", 0, 3])
def test_on_one_node_nothing_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, placement: numa.Placement
) -> None:
    def called(name: str, *arguments: object) -> None:
        raise AssertionError(name)

    monkeypatch.setattr(numa, "_call", called)
    for system in (fixtures.hybrid_laptop(tmp_path / "one"), tmp_path / "absent"):
        with bind_memory(placement, system=system) as limitation:
            assert limitation == ""
        assert place_range(0, 4096, placement, system=system) == ""


def test_by_turns_means_all_nodes_with_memory(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policies = [Policy(0, frozenset())]
    monkeypatch.setattr(numa, "read_policy", lambda: policies[-1])
    monkeypatch.setattr(numa, "set_policy", policies.append)
    with bind_memory("interleave", system=server):
        assert policies[-1] == Policy(3, frozenset({0, 1}))
    assert policies[-1] == Policy(0, frozenset())


def test_another_system_is_told(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numa, "_CALLS", {})
    with bind_memory(0, system=server) as limitation:
        assert "cannot be placed on nodes on this system" in limitation
