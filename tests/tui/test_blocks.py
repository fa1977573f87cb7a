"""The screen that shows the blocks of the index."""

from __future__ import annotations

from driving import running
from scripted_session import ScriptedSession

from edgerag.types import BlockHeat, SegmentBlocks


def block(number: int, kind: str, *, resident: int = 0, hits: int = 0, idle: float | None = None) -> BlockHeat:
    return BlockHeat(
        number=number,
        kind=kind,
        size_bytes=64_000_000,
        resident_bytes=resident,
        cached_bytes=64_000_000,
        hits=hits,
        idle_s=idle,
    )


async def test_blocks_show_what_is_in_memory_and_how_hot_it_is() -> None:
    session = ScriptedSession()
    session.blocks = [
        SegmentBlocks(
            "00000007.hnsw",
            (
                block(0, "levels", resident=64_000_000, hits=1_000_000, idle=1.0),
                block(1, "links", resident=32_000_000, hits=1_000, idle=90.0),
                block(2, "vectors"),
            ),
        )
    ]
    async with running(session, size=(120, 30)) as driver:
        await driver.press("f5")
        await driver.see("00000007.hnsw", "96.0 MB of a budget of 256.0 MB", "192.0 MB in the page cache")
        lines = {line.split()[1]: line for line in driver.rows if " hits " in line}
        assert set(lines) == {"levels", "links", "vectors"}
        assert "██████████" in lines["levels"]
        assert "█████░░░░░" in lines["links"]
        assert "90 s ago" in lines["links"]
        assert "█" not in lines["vectors"]
        assert "not used yet" in lines["vectors"]

        session.blocks = [SegmentBlocks("00000008.hnsw", (block(0, "links", hits=5, idle=0.0),))]
        await driver.see("00000008.hnsw", "5 hits")
        await driver.press("escape")
        await driver.see("Type a question below")


async def test_without_segments_it_says_why() -> None:
    async with running(ScriptedSession()) as driver:
        await driver.press("f5")
        await driver.see("No vectors are in segments yet")


async def test_without_a_library_it_says_why_too() -> None:
    async with running(ScriptedSession(documents={})) as driver:
        await driver.press("f5")
        await driver.see("No vectors are in segments yet")


async def test_a_damaged_library_is_told() -> None:
    session = ScriptedSession()
    session.failures["library_blocks"] = RuntimeError("block 3 is gone")
    async with running(session) as driver:
        await driver.press("f5")
        await driver.see("block 3 is gone")
