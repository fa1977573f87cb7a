"""The machine, the map of the index, and the models."""

from __future__ import annotations

import threading

import pytest
from driving import running
from scripted_session import ScriptedSession
from textual.widgets import DataTable

from edgerag.errors import ModelDamaged
from edgerag.machine.cores import Core
from edgerag.machine.cpu import Processor
from edgerag.machine.nodes import NumaNode
from edgerag.machine.plan import plan_cores
from edgerag.machine.topology import Topology
from edgerag.types import BlockHeat, SegmentBlocks
from edgerag.ui.tui.screens.machine import MachineFacts, MachineLoad, machine_content
from edgerag.ui.tui.screens.settings import SettingsScreen
from edgerag.ui.tui.widgets.block_map import BlockMap, heat_colour, lay_out_map, sign

MB = 1_000_000


def hybrid() -> MachineFacts:
    cores = [Core((2 * n, 2 * n + 1), "performance", 0) for n in range(4)]
    cores += [Core((8 + n,), "efficiency", 1) for n in range(4)]
    nodes = (
        NumaNode(0, frozenset(range(8)), 16_000 * MB, (10, 20)),
        NumaNode(1, frozenset(range(8, 12)), 8_000 * MB, (20, 10)),
    )
    topology = Topology(tuple(cores), nodes, None, False, True, "frequency")
    processor = Processor("x86_64", "A hybrid processor", ("AVX2", "FMA", "AVX-VNNI"))
    return MachineFacts(processor, topology, plan_cores(topology), "L2 4 x 2 MiB")


def load(**changes: object) -> MachineLoad:
    shares = {cpu: cpu / 12 for cpu in range(12)}
    values = {
        "shares": shares, "free_bytes": 6_000 * MB, "total_bytes": 24_000 * MB, "resident_bytes": 900 * MB,
        "affinities": {1: frozenset(range(12)), 2: frozenset({0, 2, 4}), 3: frozenset({0, 2, 4})},
    }  # fmt: skip
    return MachineLoad(**{**values, **changes})  # type: ignore[arg-type]


def text(width: int, machine_load: MachineLoad) -> str:
    content = machine_content(hybrid(), machine_load, index_bytes=96 * MB, budget_bytes=256 * MB, width=width)
    return content.plain


@pytest.mark.parametrize("width", [78, 118, 198])
def test_a_hybrid_machine_with_two_nodes_is_told_whole(width: int) -> None:
    told = text(width, load())
    for words in (
        "A hybrid processor", "AVX-VNNI", "4 performance (P), 4 efficiency (E)", "node 1: CPUs 8-11",
        "18.0 GB of 24.0 GB", "900.0 MB of 24.0 GB", "96.0 MB of its budget of 256.0 MB",
        "3 threads, 2 of them held: 2 on CPUs 0,2,4",
    ):  # fmt: skip
        assert words in told
    cells = [line for line in told.splitlines() if line.startswith("CPU ")]
    assert sum(line.count("CPU ") for line in cells) == 12
    assert all(len(line) <= width for line in cells)
    assert "50%" in told  # CPU 6
    assert next(line for line in cells if line.startswith("CPU 0 ")).startswith("CPU 0   P n0")


def test_what_the_system_does_not_tell_is_said() -> None:
    told = text(80, load(shares={}, affinities={}))
    assert "?" in told
    assert "Which thread runs where is not told" in told


async def test_the_machine_screen_shows_this_machine() -> None:
    async with running(size=(80, 24)) as driver:
        await driver.press("f6")
        await driver.see("This machine", "Cores:", "CPU 0")
        assert all(len(line) <= 80 for line in driver.rows)


# ------------------------------------------------------------ the map


def block(number: int, *, resident: int = 0, cached: int = 0, hits: int = 0) -> BlockHeat:
    return BlockHeat(number, "links", 64 * MB, resident * MB, cached * MB, hits, 1.0 if hits else None)


def test_the_signs_say_what_is_in_memory_and_the_colours_what_is_used() -> None:
    blocks = [block(0), block(1, cached=64), block(2, resident=1), block(3, resident=32), block(4, resident=60)]
    assert [sign(one) for one in [*blocks, block(5, resident=64)]] == ["··", "::", "░░", "▒▒", "▓▓", "██"]
    colours = [heat_colour(block(0, hits=hits), 1_000_000) for hits in (0, 1, 100, 10_000, 1_000_000)]
    assert len(set(colours)) == 5


def test_every_block_has_one_cell() -> None:
    segments = [SegmentBlocks(name, tuple(block(n) for n in range(count))) for name, count in (("a", 7), ("b", 1))]
    rows = lay_out_map(segments, 6)
    assert [row.name for row in rows if row.name] == ["a", "b"]
    assert [len(row.blocks) for row in rows] == [0, 3, 3, 1, 0, 1]
    assert [row.first for row in rows if row.blocks] == [0, 3, 6, 7]


async def test_the_map_is_walked_by_keys_and_mouse() -> None:
    session = ScriptedSession()
    session.blocks = [SegmentBlocks("00000007.hnsw", tuple(block(n, resident=n, hits=n) for n in range(65)))]
    async with running(session, size=(80, 24)) as driver:
        await driver.press("f5")
        await driver.see("00000007.hnsw", "block 0:", "the 64 most used", "0 hits")
        await driver.press("right", "down")
        await driver.see("block 39:")
        await driver.press("end")
        await driver.see("block 64:")
        await driver.pilot.click(BlockMap, offset=(6, 1))
        await driver.see("block 3:", "3 hits")
        await driver.press("m")
        await driver.see("memory.budget")


# ------------------------------------------------------------ models


async def test_models_are_listed_and_switched() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.press("f7")
        await driver.see("qwen3-0.6b", "ready", "480.0 MB", "answering: smollm2-135m-instruct")
        assert next(row for row in driver.rows if "98.0 MB" in row).lstrip().startswith("●")
        await driver.pilot.click(DataTable, offset=(6, 2))
        await driver.see("/models/qwen3-0.6b.gguf")
        assert session.settings.models.chat == "", "a click looks, and does not switch"
        await driver.press("enter")
        await driver.until(lambda: session.settings.models.chat == "qwen3-0.6b")
        await driver.see("qwen3-0.6b answers from now on")
        assert 'chat = "qwen3-0.6b"' in session.locations.config_file.read_text()
        await driver.press("s")
        await driver.until(lambda: isinstance(driver.app.screen, SettingsScreen))
        await driver.see("context_tokens", "temperature", "the model's")


async def test_a_tuning_tells_how_it_goes_and_can_be_stopped() -> None:
    session = ScriptedSession()
    gate = threading.Event()
    session.while_tuning = lambda: gate.wait(20)  # type: ignore[assignment,return-value]
    async with running(session) as driver:
        await driver.press("f7", "t")
        await driver.see("Tuning smollm2-135m-instruct", "210 tok/s of prompt")
        await driver.press("v")
        await driver.until(lambda: "Something is under way" in driver.notifications)
        await driver.press("escape")
        await driver.see("Stopping")
        gate.set()
        await driver.see("not finished")
        await driver.press("escape")
        await driver.see("Answers from your own documents")


async def test_a_model_is_verified_and_a_damaged_one_told() -> None:
    session = ScriptedSession()
    async with running(session) as driver:
        await driver.press("f7", "v")
        await driver.see("ok: smollm2-135m-instruct", "as recorded")
        session.failures["verify_models"] = ModelDamaged("The file is cut short.", remedy="Pull it again.")
        await driver.press("v")
        await driver.see("The file is cut short. Pull it again.")


async def test_what_would_run_here_is_told() -> None:
    async with running() as driver:
        await driver.press("f7", "m")
        await driver.see("The largest that writes 5 tokens per second or more:")


async def test_models_fit_80_columns() -> None:
    async with running(size=(80, 24)) as driver:
        await driver.press("f7")
        await driver.see("smollm2-135m-instruct", "ready", "Tune", "Back")
        assert all(len(line) <= 80 for line in driver.rows)


async def test_their_keys_do_not_go_past_a_dialog() -> None:
    async with running() as driver:
        await driver.press("f2")
        await driver.see("A file or a folder")
        await driver.press("f7")
        await driver.see("A file or a folder")
