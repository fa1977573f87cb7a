"""Makes the pictures of docs/images: ask.svg, passage.svg and page.svg with the real models over examples/docs;
index.svg, models.svg, settings.svg and keys.svg, which are of no machine in particular, with the session of the tests.

    .venv/bin/python tools/make_screenshot.py            # or --scripted: ask and passage like the others
    .venv/bin/python tools/make_screenshot.py --sides    # only the others

The pictures are what Textual draws; only their web fonts are taken out, so that looking at them
loads nothing from a network.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
IMAGES = CHECKOUT / "docs" / "images"
SIZE = (120, 28)
QUESTIONS = ("How often is the diaphragm replaced?",)
PATIENCE_S = 120


def real_session(home: Path) -> Any:
    """A session over a fresh library of examples/docs, with the models of this checkout."""
    from edgerag.config import Settings
    from edgerag.locations import Locations
    from edgerag.session import Session

    (home / "models").symlink_to(CHECKOUT / "models")
    session = Session(Settings(), Locations(home))
    for _ in session.ingest([CHECKOUT / "examples" / "docs"]):
        pass
    return session


def scripted_session() -> Any:
    path = CHECKOUT / "tests" / "tui" / "scripted_session.py"
    sys.path.insert(0, str(path.parent))  # what it imports lies beside it
    spec = importlib.util.spec_from_file_location("scripted_session", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module.ScriptedSession()


async def take(session: Any, *, questions: Sequence[str]) -> dict[str, str]:
    """Asks ``questions`` in the real app and gives the pictures by name."""
    from edgerag.ui.tui.app import EdgeragApp
    from edgerag.ui.tui.screens.ask import AskScreen
    from edgerag.ui.tui.widgets.question_box import QuestionBox

    app = EdgeragApp(session)
    pictures = {}
    async with app.run_test(size=SIZE) as pilot, asyncio.timeout(PATIENCE_S):
        screen = app.screen
        assert isinstance(screen, AskScreen)
        while not app.facts.known:
            await pilot.pause(0.05)
        for question in questions:
            screen.query_one(QuestionBox).insert(question)
            await pilot.press("enter")
            while screen.busy:
                await pilot.pause(0.05)
        await pilot.pause(0.5)
        pictures["ask"] = app.export_screenshot(title="edgerag")
        await pilot.press("ctrl+o")
        await pilot.pause(1.0)
        pictures["passage"] = app.export_screenshot(title="edgerag")
    return pictures


async def take_page(session: Any) -> str:
    """The page of a PDF among the sources, as it looks."""
    from edgerag.ui.tui.app import EdgeragApp
    from edgerag.ui.tui.screens.ask import AskScreen
    from edgerag.ui.tui.screens.viewer import ViewerScreen

    app = EdgeragApp(session)
    async with app.run_test(size=(120, 44)) as pilot, asyncio.timeout(PATIENCE_S):
        events = list(session.ask("Which part number does the diaphragm have?"))
        sources = events[-1].answer.sources
        sheet = next(source for source in sources if source.hit.chunk.media_type == "application/pdf")
        assert isinstance(app.screen, AskScreen)
        app.push_screen(ViewerScreen(sources, sheet.number))
        await pilot.pause(1.0)
        await pilot.press("v")
        await pilot.pause(2.0)
        return app.export_screenshot(title="edgerag")


async def take_sides(session: Any) -> dict[str, str]:
    """The screens beside the question."""
    from edgerag.locations import Locations
    from edgerag.types import BlockHeat, SegmentBlocks
    from edgerag.ui.tui.app import EdgeragApp

    session.locations = Locations(Path("/home/keeper/edgerag"))
    kinds = ["levels", *["links"] * 6, *["nibbles"] * 18, *["vectors"] * 47]
    blocks = [
        # As after some hours of questions: the graph and the codes hot, of the vectors some.
        BlockHeat(
            number=number,
            kind=kind,
            size_bytes=64_000_000,
            resident_bytes=64_000_000 if kind != "vectors" else 64_000_000 * (number * 7 % 5) // 12,
            cached_bytes=64_000_000 if number % 3 else 0,
            hits=10 ** (6 - number // 12) * (1 + number * 5 % 9) if kind != "vectors" or number % 4 else 0,
            idle_s=float(number),
        )
        for number, kind in enumerate(kinds)
    ]
    session.blocks = [SegmentBlocks("00000007.hnsw", tuple(blocks))]
    session.budget_bytes = lambda: 2_500_000_000
    app = EdgeragApp(session)
    pictures = {}
    async with app.run_test(size=SIZE) as pilot, asyncio.timeout(PATIENCE_S):
        for name, key in {"index": "f5", "models": "f7", "settings": "f8", "keys": "f9"}.items():
            await pilot.press(key)
            await pilot.pause(2.0)
            pictures[name] = app.export_screenshot(title="edgerag")
    return pictures


def without_web_fonts(svg: str) -> str:
    """The picture with the fonts of the machine that shows it, and with its spaces kept everywhere."""
    svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: *(?:Fira Code|arial)[^;]*;", "font-family: monospace;", svg)
    svg = svg.replace("&#160;", " ").replace("<text ", '<text xml:space="preserve" ')
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scripted", action="store_true", help="use the scripted session of the tests")
    parser.add_argument("--sides", action="store_true", help="only the pictures that need no models")
    parser.add_argument("questions", metavar="QUESTION", nargs="*", help="asked one after the other")
    arguments = parser.parse_args()
    sys.path.insert(0, str(CHECKOUT))
    with tempfile.TemporaryDirectory() as folder:
        pictures = asyncio.run(take_sides(scripted_session()))
        if not arguments.sides:
            session = scripted_session() if arguments.scripted else real_session(Path(folder))
            pictures |= asyncio.run(take(session, questions=arguments.questions or QUESTIONS))
            if not arguments.scripted:
                pictures["page"] = asyncio.run(take_page(session))
            session.close()
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, svg in pictures.items():
        target = IMAGES / f"{name}.svg"
        target.write_text(without_web_fonts(svg), encoding="utf-8")
        print(f"{target.relative_to(CHECKOUT)}: {len(svg):,} characters")


if __name__ == "__main__":
    main()
