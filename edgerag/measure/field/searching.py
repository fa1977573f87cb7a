"""How the index lies in memory and is searched, how passages are embedded, and what is chosen of what was found."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from edgerag.ask.plan import make_plan, read_question
from edgerag.ask.rank import rank
from edgerag.ask.relevance import judged_count, probabilities_of
from edgerag.ask.select import redundancy, select
from edgerag.index.hnsw.kernel import load_kernel, supported_paths
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.machine.memory import available_bytes
from edgerag.measure import searchers
from edgerag.measure.field.scratch import Scratch
from edgerag.measure.field.series import PartResult, Versus, timed
from edgerag.measure.sets import VectorSet, clustered_set
from edgerag.telemetry.stopwatch import Stopwatch

_DIMENSION = 384
_EF = 80  # the default of retrieval.ef_search
_K = 10
_FIXED = 5  # sources, as most programs take
_WALKS_PER_RUN = 300


def loading(bench: Scratch) -> PartResult:
    """An index read whole into memory, against one that is searched where it lies in its file."""
    name, question = "loading", "What does it cost to read the whole index into memory, rather than to map its file?"
    try:
        from edgerag.measure import hnswlib_peer
        from edgerag.measure.index import EDGERAG, build_files
    except ImportError as error:
        return PartResult(
            name, question, notes=(f"Not measured: hnswlib, which loads everything, is not usable: {error}.",)
        )
    from edgerag.measure.pinned import PinnedProcess

    data = _vectors(bench)
    place = bench.folder / "index"
    place.mkdir()
    files = build_files(place, data)
    budget_bytes = bench.settings.memory.budget_bytes(available_bytes())
    memory: dict[str, list[int]] = {"mapped": [], "loaded": []}
    ways = {
        "mapped": (EDGERAG, files.segment, files.small_segment, budget_bytes),
        "loaded": (hnswlib_peer.OPENER, files.hnswlib, files.small_hnswlib, 0),
    }

    def open_once(way: str) -> float:
        opener, file, small, budget = ways[way]
        with PinnedProcess(data.queries, data.truth) as process:
            opened = process.load(opener, file, dimension=_DIMENSION, budget_bytes=budget, warmed_with=small)
            memory[way].append(opened["anonymous_bytes"] or opened["rss_bytes"])
        return float(opened["open_ms"]) / 1e3

    turns = bench.turns()
    turns.go({way: lambda way=way: open_once(way) for way in ways}, rounds=bench.effort.rounds, warm=0)  # type: ignore[misc]
    return PartResult(
        name,
        question,
        tuple(turns.series(way, part=name, unit="s", better="less") for way in ways),
        (Versus("mapped", "loaded", f"{name}.mapped", f"{name}.loaded"),),
        {
            "rows": len(data.base),
            "mapped_memory_bytes": int(statistics.median(memory["mapped"])),
            "loaded_memory_bytes": int(statistics.median(memory["loaded"])),
            "segment_bytes": files.segment.stat().st_size,
            "hnswlib_bytes": files.hnswlib.stat().st_size,
        },
        (
            "Time to open, in a process of its own each time, with the file in the system's cache.",
            "Memory: what opening took of the process's own. Mapped pages can be given back, and are bounded by "
            "memory.budget, in blocks of 64 MB.",
        ),
    )


def instructions(bench: Scratch) -> PartResult:
    """The index searched with each set of instructions that this processor has."""
    name, question = "instructions", "How much faster do wider instructions search the index?"
    kernel = load_kernel()
    if kernel is None:
        return PartResult(
            name, question, notes=("Not measured: the kernel was not compiled here (see `edgerag doctor`).",)
        )
    from edgerag.index.hnsw.build import GraphSettings, build_graph
    from edgerag.measure.index import write_measured_segment

    paths = list(supported_paths(kernel.library))
    data = _vectors(bench)
    file = bench.folder / "instructions.hnsw"
    write_measured_segment(file, data, build_graph(data.base, scratch=bench.folder / "graph", settings=GraphSettings()))
    residency = Residency(bench.settings.memory.budget_bytes(available_bytes()))
    segments = {
        path: Segment(file, identity=searchers.identity_of(_DIMENSION), residency=residency, kernel=load_kernel(path))
        for path in paths
    }
    queries = data.queries[:_WALKS_PER_RUN]
    turns = bench.turns()

    def search_s(segment: Segment) -> float:
        return timed(lambda: segment.search_many(queries, limit=_K, ef_search=_EF)) / len(queries)

    try:
        turns.go(
            {path: lambda segment=segment: search_s(segment) for path, segment in segments.items()},  # type: ignore[misc]
            rounds=bench.effort.rounds,
        )
    finally:
        for segment in segments.values():
            segment.close()
    best = paths[-1]
    notes = [f"Seconds per search of {len(data.base):,} vectors on one core; all give the same hits. In use: {best}."]
    if not any("avx512" in path.lower() for path in paths):
        notes.append("This processor, or this kernel, has no AVX-512.")
    return PartResult(
        name,
        question,
        tuple(turns.series(path, part=name, unit="s", better="less") for path in paths),
        tuple(Versus(best, path, f"{name}.{best}", f"{name}.{path}") for path in reversed(paths[:-1])),
        {"rows": len(data.base)},
        tuple(notes),
    )


def choosing(bench: Scratch) -> PartResult:
    """What is chosen as sources against the first five hits: repetition, and how full the budget is."""
    name = "sources"
    rows: dict[str, list[float]] = {}

    def note(key: str, value: float) -> None:
        rows.setdefault(key, []).append(value)

    settings = bench.settings.retrieval
    for question in bench.questions:
        plan = make_plan(
            read_question(question.question).text,
            settings=settings,
            languages=bench.library.identity.languages,
            terms=bench.library.query_terms,
            weigh=bench.library.term_weights,
        )
        ranked = rank(
            plan,
            library=bench.library,
            embedder=lambda: bench.embedder,
            settings=settings,
            stopwatch=Stopwatch(),
            cancelled=lambda: False,
        )
        judged = ranked.hits[: judged_count(plan)]
        chosen = select(
            judged,
            probabilities=probabilities_of(judged, script=plan.script),
            question=plan.question,
            count=plan.source_count,
            most=max(plan.source_count, plan.most_sources),
            likeness=ranked.likeness,
        )
        wanted = _words(question.passages[0][1])
        budget = max(1, chosen.report.budget_tokens)
        for way, hits in (("chosen", chosen.hits), ("first_five", judged[:_FIXED])):
            texts = [hit.chunk.chunk.text for hit in hits]
            note(f"{way}_redundancy", redundancy(texts) if len(texts) > 1 else 0.0)
            note(f"{way}_fill", sum(hit.chunk.chunk.token_count for hit in hits) / budget)
            note(f"{way}_sources", len(hits))
            note(f"{way}_right_found", float(any(len(wanted & _words(text)) > len(wanted) / 2 for text in texts)))
    return PartResult(
        name,
        f"What do chosen sources hold that the first {_FIXED} hits do not?",
        figures={key: round(statistics.fmean(values), 4) for key, values in rows.items()},
        notes=(
            f"Means over {len(bench.questions)} questions. redundancy: overlap of two sources (pairs of words); "
            "fill: tokens as a share of the budget; right found: the passage with the answer is among them.",
            "Made-up manuals say similar things in similar words: `edgerag eval` measures documents of yours.",
        ),
    )


def embedding(bench: Scratch) -> PartResult:
    """Passages together and one by one, and a question."""
    name, turns = "embedding", bench.turns()
    texts = [text for question in bench.questions for _, text in question.passages][: bench.effort.passages]
    short = [text[: len(text) // 4] for text in texts]
    asked = [question.question for question in bench.questions]
    count = 0

    def one_question() -> float:
        nonlocal count
        count += 1
        return timed(lambda: bench.embedder.embed_query(f"{asked[count % len(asked)]} {count}"))

    def rate(passages: list[str]) -> float:
        return len(passages) / timed(lambda: bench.embedder.embed_passages(passages))

    def one_by_one() -> float:
        return len(texts) / timed(lambda: [bench.embedder.embed_passages([text]) for text in texts])

    turns.go(
        {"together": lambda: rate(texts), "one_by_one": one_by_one, "short": lambda: rate(short)},
        rounds=bench.effort.rounds,
    )
    turns.go({"question": one_question}, rounds=4 * bench.effort.rounds)
    rates = ("together", "one_by_one", "short")
    return PartResult(
        name,
        "How fast are passages and questions embedded?",
        (
            *(turns.series(way, part=name, unit="passages/s", better="more") for way in rates),
            turns.series("question", part=name, unit="s", better="less"),
        ),
        (Versus("together", "one_by_one", f"{name}.together", f"{name}.one_by_one"),),
        {"model": bench.embedder_model.name, "passages": len(texts)},
        ("short: the same passages, a quarter as long.", "`edgerag bench ingest` compares other backends."),
    )


PARTS: Mapping[str, Callable[[Scratch], PartResult]] = {
    "loading": loading,
    "instructions": instructions,
    "sources": choosing,
    "embedding": embedding,
}


def _vectors(bench: Scratch) -> VectorSet:
    """The same for every part."""
    return clustered_set(bench.effort.rows, dimension=_DIMENSION, queries=_WALKS_PER_RUN)


def _words(text: str) -> frozenset[Any]:
    words = text.split()
    return frozenset(pairwise(words))
