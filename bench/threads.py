"""How long 1,000 conversations take to list, search, open and go on with, and what a question costs to keep.

    python bench/threads.py [--threads 1000] [--exchanges 6] [--long 300] [--json FILE]

The store is filled as the program fills it, one question and answer after the other; one thread is ``--long``. The
screen is the real app at 160x50 over the scripted session of the tests: its times are from the key press to the
conversation on the screen, waits of the test driver included. Everything is made with a fixed seed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from record import CHECKOUT, record

from edgerag.threads.store import ThreadStore
from edgerag.types import Answer, Chunk, Hit, Scores, Source, StoredChunk, TokenCounts

_WORDS = [
    "pump",
    "torque",
    "lid",
    "screw",
    "gasket",
    "diaphragm",
    "newton",
    "metre",
    "valve",
    "ball",
    "strainer",
    "frost",
    "brine",
    "acid",
    "log",
    "power",
    "cut",
]
_PASSAGE = " ".join(_WORDS * 6)
_SOURCES = 6
_ROUNDS = 9


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the threads of the terminal UI.")
    parser.add_argument("--threads", type=int, default=1000)
    parser.add_argument("--exchanges", type=int, default=6)
    parser.add_argument("--long", type=int, default=300)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    chance = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as scratch:
        file = Path(scratch) / "threads.sqlite"
        store = ThreadStore(file)
        began = time.perf_counter()
        for number in range(arguments.threads):
            last = number == arguments.threads - 1
            fill(store, chance, arguments.long if last else arguments.exchanges)
        count = (arguments.threads - 1) * arguments.exchanges + arguments.long
        figures: dict[str, Any] = {
            "exchanges": count,
            "file_bytes": file.stat().st_size,
            "keep_question_and_answer_ms": round(1e3 * (time.perf_counter() - began) / count, 2),
        }
        figures |= of_store(store, file)
        figures |= asyncio.run(of_screen(store))
        store.close()
    print(record("threads", figures, parameters=vars(arguments) | {"json": None}, file=arguments.json))
    print(figures)


def fill(store: ThreadStore, chance: random.Random, count: int) -> None:
    thread_id = parent_id = None
    for _ in range(count):
        question = " ".join(chance.choices(_WORDS, k=9)) + "?"
        exchange = store.ask(question, library="default", thread_id=thread_id, parent_id=parent_id)
        store.finish(exchange.id, answer(chance))
        thread_id, parent_id = exchange.thread_id, exchange.id


def answer(chance: random.Random) -> Answer:
    """Four paragraphs that cite six sources."""
    paragraphs = (" ".join(chance.choices(_WORDS, k=60)) + f" [{n}]." for n in range(1, 5))
    chunk = Chunk(0, 0, len(_PASSAGE), _PASSAGE, ("Torques",), None, None, 1, 9, 160)
    stored = StoredChunk(1, 1, "/docs/pump.md", "The pump", "text/markdown", chunk, kv_key="doc-1-chunk-0-v1")
    hit = Hit(stored, Scores(7.5, 1, 0.7, 1, 0.03))
    return Answer(
        question="",
        text="\n\n".join(paragraphs),
        found=True,
        sources=tuple(Source(n, hit, _PASSAGE[:90], 0, cited=n < 5) for n in range(1, _SOURCES + 1)),
        stop_reason="end",
        timings=(),
        tokens=TokenCounts(500, 300),
        model="none",
        pending_count=0,
        notes=(),
    )


def of_store(store: ThreadStore, file: Path) -> dict[str, float]:
    newest = store.heads(library="default")[0]

    def opened() -> None:
        ThreadStore(file).close()

    return {
        "open_file_ms": median_ms(opened),
        "list_ms": median_ms(lambda: store.heads(library="default")),
        "last_exchanges_ms": median_ms(lambda: store.last(newest.id, count=7)),
        "history_ms": median_ms(lambda: store.history(store.last(newest.id, count=1)[0].id)),
        "search_all_ms": median_ms(lambda: store.search("pump torque", library="default")),
        "search_as_typed_ms": median_ms(lambda: store.search("p", library="default")),
        "delete_ms": median_ms(lambda: store.delete([store.heads(library="default")[-1].id])),
    }


def median_ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return round(1e3 * statistics.median(times), 2)


async def of_screen(store: ThreadStore) -> dict[str, float]:
    from edgerag.ui.tui.app import EdgeragApp
    from edgerag.ui.tui.widgets.exchange import ExchangeView

    session = scripted_session()
    session.kept = store
    app = EdgeragApp(session)
    figures: dict[str, float] = {}
    began = time.perf_counter()

    async def until(condition: Callable[[], object], name: str) -> None:
        while not condition():
            await asyncio.sleep(0.005)
        figures[name] = round(time.perf_counter() - began, 3)

    async with app.run_test(size=(160, 50)) as pilot, asyncio.timeout(120):
        threads = app.screen.query_one("#threads")
        await until(
            lambda: "(" in str(threads.border_title) and "(0" not in str(threads.border_title), "start_to_list_s"
        )
        await pilot.press("ctrl+t", "home")
        began = time.perf_counter()
        await pilot.press("enter")
        await until(lambda: [view for view in app.screen.query(ExchangeView) if view.text], "open_thread_s")
    return figures


def scripted_session() -> Any:
    path = CHECKOUT / "tests" / "tui" / "scripted_session.py"
    sys.path.insert(0, str(path.parent))  # what it imports lies beside it
    spec = importlib.util.spec_from_file_location("scripted_session", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module.ScriptedSession()


if __name__ == "__main__":
    main()
