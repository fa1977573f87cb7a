"""What changes when common words have no part in the keyword search of a large library?

    python bench/common_words.py [--data DIR] [--questions 160] [--json FILE]

Questions of four data sets are asked of 101,950 passages (the library of bench/instant_latency.py), with every word and
with those that stand in no more chunks together than a bound: how much of the ten best hits, after the reranker, is the
same.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import datasets
import instant_latency
import numpy as np
from record import record
from retrieval import default_embedder

from edgerag.ask.plan import make_plan, read_question
from edgerag.ask.rank import rank
from edgerag.config import RetrievalSettings
from edgerag.index import keywords
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import Embedder

_BOUNDS = (10**9, 8_000, 6_000, 4_000, 2_000)
_BEST = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--questions", type=int, default=160)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    folder = instant_latency.cached_set()
    questions = instant_latency.questions_of(datasets.data_folder(arguments.data))[: arguments.questions]
    texts = json.loads((folder / "text100k.texts.json").read_text(encoding="utf-8"))
    vectors = np.load(folder / "text100k.base.npy", mmap_mode="r")
    embedder = default_embedder()
    figures = {}
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as scratch:
        instant_latency.build(Path(scratch) / "library", texts, vectors, embedder)
        with open_library(Path(scratch) / "library", mode="read", residency=Residency(256_000_000)) as library:
            every: list[list[int]] = []
            for bound in _BOUNDS:
                keywords._MOST_WEIGHED = bound
                found = [best(question, library, embedder) for question in questions]
                every = every or found
                figures[str(bound)] = {f"best_{n}": shared(every, found, n) for n in (1, 5, _BEST)}
                print(bound, figures[str(bound)], flush=True)
    print(record("common_words", figures, parameters={"questions": len(questions)}, file=arguments.json))


def best(question: str, library: Library, embedder: Embedder) -> list[int]:
    settings = RetrievalSettings(vector_deadline_ms=0)
    plan = make_plan(
        read_question(question).text,
        settings=settings,
        languages=library.identity.languages,
        terms=library.query_terms,
        weigh=library.term_weights,
    )
    ranked = rank(
        plan,
        library=library,
        embedder=lambda: embedder,
        settings=settings,
        stopwatch=Stopwatch(),
        cancelled=lambda: False,
        limit=_BEST,
    )
    return [hit.chunk.id for hit in ranked.hits]


def shared(every: Sequence[Sequence[int]], found: Sequence[Sequence[int]], count: int) -> float:
    """The share of the best ``count`` hits that both have."""
    shares = [len({*one[:count]} & {*other[:count]}) / count for one, other in zip(every, found, strict=True)]
    return round(float(np.mean(shares)), 4)


if __name__ == "__main__":
    main()
