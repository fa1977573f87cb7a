"""What the sources of a question hold: how much of what is relevant, how often the same, how full the budget.

    python bench/selection.py [--data DIR] [--sets scifact,cranfield,xquad-en,pubmedqa] [--half tune|report|all]

For the selection as the program makes it, and for the first hits in their order that fill the same budget: the share of
the right documents that are among the sources, the tokens that they take, the mean overlap of two sources (Jaccard over
pairs of words), and, of the questions with relevant text for the whole budget, the share of it that is used.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import datasets
from record import record
from retrieval import default_embedder, half
from train_reranker import library_for

from edgerag.ask.plan import make_plan, read_question
from edgerag.ask.rank import Ranked, rank
from edgerag.ask.relevance import judged_count, probabilities_of
from edgerag.ask.select import redundancy, select
from edgerag.config import RetrievalSettings
from edgerag.index.library import Library
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import Embedder, Hit, Plan

SETS = ("scifact", "cranfield", "xquad-en", "xquad-de", "pubmedqa")
_QUERIES = 300  # of one set


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    query: datasets.Query
    plan: Plan
    ranked: Ranked
    judged: tuple[Hit, ...]
    probabilities: Mapping[int, float]


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    hits: Sequence[Hit]
    tokens: int
    redundancy: float
    fill: float | None  # None where there is less relevant text than room


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--half", choices=("all", "tune", "report"), default="report")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    model = default_embedder()
    figures: dict[str, Any] = {}
    for name in arguments.sets.split(","):
        chosen = datasets.load(name, data)
        queries = [query for query in half(chosen.queries, arguments.half) if query.relevant]
        with library_for(chosen, "chunked", model) as library:
            asked = list(asked_of(queries[:: max(1, len(queries) // _QUERIES)][:_QUERIES], library, model))
        figures[name] = figures_of(asked)
        for way, row in figures[name].items():
            print(f"{name:12} {way:12} {row}", flush=True)
    print(record("selection", figures, parameters={"half": arguments.half}))


def asked_of(queries: Sequence[datasets.Query], library: Library, model: Embedder) -> Iterator[Asked]:
    settings = RetrievalSettings(vector_deadline_ms=0)
    for query in queries:
        plan = make_plan(
            read_question(query.text).text,
            settings=settings,
            languages=library.identity.languages,
            terms=library.query_terms,
            weigh=library.term_weights,
        )
        ranked = rank(
            plan,
            library=library,
            embedder=lambda: model,
            settings=settings,
            stopwatch=Stopwatch(),
            cancelled=lambda: False,
        )
        judged = ranked.hits[: judged_count(plan)]
        probabilities = probabilities_of(judged, script=plan.script)
        if max(probabilities.values(), default=0.0) >= settings.found_probability:
            yield Asked(query, plan, ranked, judged, probabilities)


def figures_of(asked: Sequence[Asked]) -> dict[str, Any]:
    selected = [by_worth(each) for each in asked]
    return {
        "selected": figures_by(asked, selected),
        "in_order": figures_by(asked, [in_order(each) for each in asked]),
    }


def by_worth(asked: Asked) -> Sources:
    selection = select(
        asked.judged,
        probabilities=asked.probabilities,
        question=asked.plan.question,
        count=asked.plan.source_count,
        most=max(asked.plan.source_count, asked.plan.most_sources),
        likeness=asked.ranked.likeness,
    )
    report = selection.report
    full = report.relevant_tokens >= report.budget_tokens
    return Sources(selection.hits, report.used_tokens, report.redundancy, report.fill if full else None)


def in_order(asked: Asked) -> Sources:
    """The first hits, as many as the plan has."""
    hits = asked.judged[: asked.plan.source_count]
    tokens = sum(hit.chunk.chunk.token_count for hit in hits)
    return Sources(hits, tokens, redundancy([hit.chunk.chunk.text for hit in hits]), None)


def figures_by(asked: Sequence[Asked], sources: Sequence[Sources]) -> dict[str, float]:
    found = [
        len(each.query.relevant & {name(hit) for hit in chosen.hits}) / len(each.query.relevant)
        for each, chosen in zip(asked, sources, strict=True)
    ]
    fills = [each.fill for each in sources if each.fill is not None]
    several = [each.redundancy for each in sources if len(each.hits) > 1]
    return {
        "questions": len(asked),
        "right_found": round(fmean(found), 4),
        "sources": round(fmean(len(each.hits) for each in sources), 2),
        "tokens": round(fmean(each.tokens for each in sources), 1),
        "redundancy": round(fmean(several), 4) if several else 0.0,
        "redundancy_most": round(max(several, default=0.0), 4),
        "full_questions": len(fills),
        "fill": round(fmean(fills), 4) if fills else 1.0,
        "fill_least": round(min(fills, default=1.0), 4),
    }


def name(hit: Hit) -> str:
    return hit.chunk.path.removeprefix("/")


if __name__ == "__main__":
    main()
