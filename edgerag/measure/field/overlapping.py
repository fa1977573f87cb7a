"""What it brings to do things beside each other: the first hits of a cold start, and both legs of a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any

from edgerag.ask.plan import make_plan, read_question
from edgerag.ask.rank import rank
from edgerag.measure.field.scratch import Scratch
from edgerag.measure.field.series import PartResult, Versus
from edgerag.telemetry.stopwatch import Stopwatch


def overlap(bench: Scratch) -> PartResult:
    """The first hits of a cold start, and both legs of a search: one after the other, and beside each other."""
    name, turns = "overlap", bench.turns()
    asked = [read_question(question.question).text for question in bench.questions]
    plans = [
        make_plan(
            text,
            settings=bench.settings.retrieval,
            languages=bench.library.identity.languages,
            terms=bench.library.query_terms,
            weigh=bench.library.term_weights,
        )
        for text in asked
    ]
    count = 0

    def next_plan() -> Any:
        nonlocal count
        count += 1
        return plans[count % len(plans)]

    def search(embedder: Callable[[], Any]) -> None:
        rank(
            next_plan(),
            library=bench.library,
            embedder=embedder,
            settings=bench.settings.retrieval,
            stopwatch=Stopwatch(),
            cancelled=lambda: False,
        )

    def cold(*, beside: bool) -> float:
        opened: dict[str, Any] = {}

        def load_chat() -> None:
            opened["chat"] = bench.open_generator()

        def load_embedder() -> Any:
            opened["embedder"] = bench.open_embedder()
            return opened["embedder"]

        began = time.perf_counter()
        if beside:
            loading = Thread(target=load_chat)
            loading.start()
            search(load_embedder)
            loading.join()
        else:
            load_chat()
            embedder = load_embedder()
            search(lambda: embedder)
        seconds = time.perf_counter() - began
        for model in opened.values():
            model.close()
        return seconds

    def legs(*, beside: bool) -> float:
        plan = next_plan()
        began = time.perf_counter()
        if beside:
            search(lambda: bench.embedder)
        else:
            vector = bench.embedder.embed_query(plan.question)
            search(lambda: _Embedded(bench.embedder, vector))
        return time.perf_counter() - began

    ways: Mapping[str, Callable[[], float]] = {
        "cold_overlapped": lambda: cold(beside=True),
        "cold_serial": lambda: cold(beside=False),
    }
    turns.go(ways, rounds=bench.effort.rounds)
    turns.go(
        {"search_overlapped": lambda: legs(beside=True), "search_serial": lambda: legs(beside=False)},
        rounds=4 * bench.effort.rounds,
    )
    names = ("cold_overlapped", "cold_serial", "search_overlapped", "search_serial")
    return PartResult(
        name,
        "What does it bring to do things beside each other?",
        tuple(turns.series(way, part=name, unit="s", better="less") for way in names),
        tuple(
            Versus(f"{of}_overlapped", f"{of}_serial", f"{name}.{of}_overlapped", f"{name}.{of}_serial")
            for of in ("cold", "search")
        ),
        {},
        (
            "cold: chat model, embedder and the first search, until all three are done.",
            "search: the words of a question are looked up while its vector is made, or after.",
        ),
    )


class _Embedded:
    """An embedder that has the vector of the question already."""

    def __init__(self, embedder: Any, vector: Any) -> None:
        self.identity = embedder.identity
        self.max_tokens = embedder.max_tokens
        self.count_tokens = embedder.count_tokens
        self.embed_passages = embedder.embed_passages
        self._vector = vector

    def embed_query(self, _text: str) -> Any:
        return self._vector
