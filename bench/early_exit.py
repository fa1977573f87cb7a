"""When may the vector leg be left out? Questions without their small words, as people type them into a search box.

    python bench/early_exit.py [--data DIR] [--sets scifact,cranfield,xquad-en,pubmedqa] [--half tune|report|all]

Each is ranked with both legs and with the keyword leg alone. For every lead of the best keyword hit over the second:
the share of queries that would be answered by words alone, and what nDCG@10 over all queries loses by it.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import datasets
import numpy as np
from record import record
from retrieval import default_embedder, half, ndcg
from train_reranker import library_for

from edgerag.ask.confidence import LEAST_LEAD, lead_of
from edgerag.ask.plan import make_plan
from edgerag.ask.rank import rank
from edgerag.config import RetrievalSettings
from edgerag.index.library import Library
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import Embedder, Plan

SETS = ("scifact", "cranfield", "xquad-en", "pubmedqa")
LEADS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
_QUERIES = 300  # of one set, so that none outweighs the others


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """One query: the lead of its best keyword hit, and nDCG@10 with both legs and by words alone."""

    lead: float
    both: float
    words: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--half", choices=("all", "tune", "report"), default="tune")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    model = default_embedder()
    figures: dict[str, Any] = {}
    everything: list[Query] = []
    for name in arguments.sets.split(","):
        chosen = datasets.load(name, data)
        asked = half(chosen.queries, arguments.half)
        step = max(1, len(asked) // _QUERIES)
        with library_for(chosen, "chunked", model) as library:
            judged = list(_judged(asked[::step][:_QUERIES], library, model))
        everything += judged
        figures[name] = table(judged)
        print(name, len(judged), figures[name][str(LEAST_LEAD)], flush=True)
    figures["all"] = table(everything)
    for lead, row in figures["all"].items():
        print(f"lead {lead}: {row}")
    print(record("early_exit", figures, parameters={"half": arguments.half, "in_use": LEAST_LEAD}))


def table(judged: Sequence[Query]) -> dict[str, dict[str, float]]:
    both = np.array([query.both for query in judged])
    words = np.array([query.words for query in judged])
    leads = np.array([query.lead for query in judged])
    rows = {}
    for least in LEADS:
        exits = leads >= least
        rows[str(least)] = {
            "exits": round(float(exits.mean()), 4),
            "ndcg@10_lost": round(float((both - np.where(exits, words, both)).mean()), 4),
        }
    return rows


def _judged(asked: Sequence[datasets.Query], library: Library, model: Embedder) -> Iterator[Query]:
    for query in asked:
        words = " ".join(library.query_terms(query.text))
        if not words or not query.relevant:
            continue
        plan = dataclasses.replace(
            make_plan(
                words,
                settings=RetrievalSettings(),
                languages=library.identity.languages,
                terms=library.query_terms,
            ),
            words_first=False,
        )
        keyword = library.search_keywords(words, limit=plan.candidate_count)
        alone = dataclasses.replace(plan, vector_weight=0.0)
        yield Query(
            lead_of(keyword),
            _ndcg(plan, query, library, model),
            _ndcg(alone, query, library, model),
        )


def _ndcg(plan: Plan, query: datasets.Query, library: Library, model: Embedder) -> float:
    ranked = rank(
        plan,
        library=library,
        embedder=lambda: model,
        settings=RetrievalSettings(vector_deadline_ms=0),
        stopwatch=Stopwatch(),
        cancelled=lambda: False,
    )
    found = list(dict.fromkeys(hit.chunk.path.removeprefix("/") for hit in ranked.hits))
    return ndcg(found[:10], query.relevant)


if __name__ == "__main__":
    main()
