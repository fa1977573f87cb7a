"""Is the right document found? Keyword leg, vector leg and both fused, side by side on the same data.

    python bench/retrieval.py --data DIR [--sets cranfield,xquad-en,...] [--half all|tune|report] [--json FILE]

Queries are split in two by position: constants are tuned on the even ones ("tune") and reported on
the odd ones ("report"). nDCG@10 is binary; hit@k asks whether a relevant document is among the first k.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import datasets
from libraries import RememberingEmbedder, document_id, library_of
from record import CHECKOUT, record

from edgerag.ask.plan import make_plan, read_question
from edgerag.ask.rank import rank
from edgerag.config import RetrievalSettings
from edgerag.engine.catalog import Catalog
from edgerag.engine.embedder import open_embedder
from edgerag.index.library import Library
from edgerag.index.shelf import Shelf
from edgerag.machine.topology import read_topology
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import Embedder, Plan

DEFAULT_SETS = (
    "cranfield",
    "xquad-en",
    "xquad-zh",
    "xquad-de",
    "xquad-ru",
    "xquad-es",
    "xquad-ro",
    "xquad-tr",
    "xquad-vi",
)

LEGS: dict[str, Callable[[Plan], Plan]] = {
    "keyword": lambda plan: dataclasses.replace(plan, vector_weight=0.0),
    "vector": lambda plan: dataclasses.replace(plan, keyword_weight=0.0, vector_weight=1.0),
    "fused": lambda plan: plan,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Judges retrieval on public data sets.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--sets", default=",".join(DEFAULT_SETS), help=f"of {', '.join(datasets.NAMES)}")
    parser.add_argument("--half", choices=("all", "tune", "report"), default="all")
    parser.add_argument("--embedder", default="", help="a name from `models list` (default: the first embedder)")
    parser.add_argument("--limit", type=int, default=10**9, help="queries per set at most")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    figures: dict[str, Any] = {}
    model = default_embedder(arguments.embedder)
    for name in arguments.sets.split(","):
        data_set = datasets.load(name, data)
        queries = half(data_set.queries, arguments.half)[: arguments.limit]
        embedder = RememberingEmbedder(model, name)
        with library_of(data_set, embedder) as library:
            figures[name] = judge(library, embedder, queries)
        embedder.save()
        print_row(name, figures[name])
    parameters = {"half": arguments.half, "limit": arguments.limit, "embedder": model.identity.name}
    print(record("retrieval", figures, parameters=parameters, file=arguments.json))


def default_embedder(name: str = "") -> Embedder:
    catalog = Catalog(CHECKOUT / "models", CHECKOUT / "models" / "manifest.toml")
    return open_embedder(catalog.find("embedder", name), threads=read_topology().thread_count)


def half(queries: Sequence[datasets.Query], which: str) -> Sequence[datasets.Query]:
    """The half of the queries to tune on, to report on, or all."""
    return {"all": queries, "tune": queries[0::2], "report": queries[1::2]}[which]


def judge(library: Library | Shelf, embedder: RememberingEmbedder, queries: Sequence[datasets.Query]) -> dict[str, Any]:
    """hit@1, hit@5 and nDCG@10 of each leg, and the median milliseconds of the fused one."""
    settings = RetrievalSettings(vector_deadline_ms=0)  # no figure depends on how busy the machine is
    sums = {leg: {"hit@1": 0.0, "hit@5": 0.0, "ndcg@10": 0.0} for leg in LEGS}
    seconds: list[float] = []
    for query in queries:
        plan = make_plan(
            read_question(query.text).text,
            settings=settings,
            languages=library.identity.languages,
            terms=library.query_terms,
        )
        for leg, changed in LEGS.items():
            stopwatch = Stopwatch()
            ranked = rank(
                changed(plan),
                library=library,
                embedder=lambda: embedder,
                settings=settings,
                stopwatch=stopwatch,
                cancelled=lambda: False,
            )
            if leg == "fused":
                seconds.append(stopwatch.elapsed())
            found = list(dict.fromkeys(document_id(hit.chunk.path) for hit in ranked.hits))
            sums[leg]["hit@1"] += bool(query.relevant & set(found[:1]))
            sums[leg]["hit@5"] += bool(query.relevant & set(found[:5]))
            sums[leg]["ndcg@10"] += ndcg(found[:10], query.relevant)
    count = len(queries)
    figures: dict[str, Any] = {
        leg: {measure: round(total / count, 4) for measure, total in totals.items()} for leg, totals in sums.items()
    }
    return figures | {
        "documents": library.chunk_count(),
        "queries": count,
        # The query's embedding is remembered from the vector leg and not in it.
        "fused_median_ms": round(sorted(seconds)[count // 2] * 1000, 2),
    }


def ndcg(found: Sequence[str], relevant: frozenset[str]) -> float:
    """Normalised discounted cumulative gain of a ranking, relevance being yes or no."""
    gain = sum(1 / math.log2(rank + 1) for rank, identity in enumerate(found, start=1) if identity in relevant)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(relevant), 10) + 1))
    return gain / ideal if ideal else 0.0


def print_row(name: str, figures: dict[str, Any]) -> None:
    legs = "   ".join(
        f"{leg} {figures[leg]['hit@1']:.3f} / {figures[leg]['hit@5']:.3f} / {figures[leg]['ndcg@10']:.3f}"
        for leg in LEGS
    )
    print(f"{name:10} {figures['queries']:5} queries   hit@1 / hit@5 / nDCG@10:   {legs}", flush=True)


if __name__ == "__main__":
    main()
