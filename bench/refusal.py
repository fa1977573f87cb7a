"""Is it told when there is no answer? Questions over documents that hold the answer, and over others.

    python bench/refusal.py --data DIR [--json FILE]

Three kinds of questions: over their own documents (to be answered); over documents on other subjects
(XQuAD over Cranfield and the reverse); and over the other half of their own collection, split by
article, which is the hardest case: same style, same language, neighbouring subjects. Even questions
are for fitting, and what a logistic regression finds on them is printed beside the constants in use;
odd ones are reported.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from libraries import RememberingEmbedder, library_of
from record import record
from retrieval import default_embedder

from edgerag.ask import relevance
from edgerag.ask.plan import make_plan, read_question
from edgerag.ask.rank import rank
from edgerag.config import RetrievalSettings
from edgerag.index.library import Library
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import Embedder, Hit

LANGUAGES = ("en", "de", "ru", "zh")
_PER_SET = 300  # questions of one set over one library, so that no set outweighs the others

_Signals = tuple[float | None, float, float]


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One question over one library: its best hits as (nearness or None, words covered, words together)."""

    group: str
    script: str
    answerable: bool
    hits: tuple[_Signals, ...]

    def found(self) -> bool:
        """What the program decides."""
        probabilities = (
            relevance.chunk_probability(nearness=nearness, covered=covered, together=together, script=self.script)
            for nearness, covered, together in self.hits
        )
        return max(probabilities, default=0.0) >= RetrievalSettings().found_probability


def main() -> None:
    parser = argparse.ArgumentParser(description="Judges the refusal of questions without an answer.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    model = default_embedder()
    tune: list[Case] = []
    report: list[Case] = []
    for cases in all_cases(data, model):
        tune += cases[0::2]
        report += cases[1::2]
    figures: dict[str, Any] = {"groups": rates(report), "total": total(report), "fitted": fit(tune)}
    for group, values in [*figures["groups"].items(), ("all", figures["total"])]:
        print(f"{group:44} {values}")
    print("logistic regression on the other half:", figures["fitted"])
    print(record("refusal", figures, parameters={"embedder": model.identity.name}, file=arguments.json))


def all_cases(data: Path, model: Embedder) -> Iterator[list[Case]]:
    xquad = {language: datasets.load(f"xquad-{language}", data) for language in LANGUAGES}
    cranfield = datasets.load("cranfield", data)
    embedder = RememberingEmbedder(model, "cranfield")
    with library_of(cranfield, embedder) as library:
        own = [query for query in cranfield.queries if query.relevant]
        yield cases_of("cranfield over its own", own, library, embedder, answerable=True)
        for language, other in xquad.items():
            yield cases_of(f"xquad-{language} over cranfield", other.queries, library, embedder, answerable=False)
    embedder.save()
    for language, whole in xquad.items():
        embedder = RememberingEmbedder(model, f"xquad-{language}")
        with library_of(whole, embedder) as library:
            yield cases_of(f"xquad-{language} over its own", whole.queries, library, embedder, answerable=True)
            yield cases_of(f"cranfield over xquad-{language}", cranfield.queries, library, embedder, answerable=False)
        kept = datasets.first_half(whole)
        ids = {text.id for text in kept.texts}
        with library_of(kept, embedder) as library:
            strangers = [query for query in whole.queries if not query.relevant & ids]
            yield cases_of(f"xquad-{language} over the other half", strangers, library, embedder, answerable=False)
        embedder.save()


def cases_of(
    group: str, queries: Sequence[datasets.Query], library: Library, embedder: Embedder, *, answerable: bool
) -> list[Case]:
    """At most ``_PER_SET`` of the queries, evenly spread."""
    step = max(1, len(queries) // _PER_SET)
    return [case_of(group, query, library, embedder, answerable=answerable) for query in queries[::step][:_PER_SET]]


def case_of(group: str, query: datasets.Query, library: Library, embedder: Embedder, *, answerable: bool) -> Case:
    settings = RetrievalSettings(vector_deadline_ms=0)  # no figure depends on how busy the machine is
    plan = make_plan(
        read_question(query.text).text,
        settings=settings,
        languages=library.identity.languages,
        terms=library.query_terms,
    )
    ranked = rank(
        plan,
        library=library,
        embedder=lambda: embedder,
        settings=settings,
        stopwatch=Stopwatch(),
        cancelled=lambda: False,
    )
    judged = ranked.hits[: relevance.JUDGED_HITS]
    return Case(group, plan.script, answerable, tuple(map(_signals, judged)))


def rates(cases: Sequence[Case]) -> dict[str, dict[str, float]]:
    """Error rate of each group: refused though answerable, or answered though not."""
    groups: dict[str, dict[str, float]] = {}
    for group in dict.fromkeys(case.group for case in cases):
        members = [case for case in cases if case.group == group]
        wrong = sum(case.found() != case.answerable for case in members) / len(members)
        groups[group] = {"refused" if members[0].answerable else "answered": round(wrong, 4), "questions": len(members)}
    return groups


def total(cases: Sequence[Case]) -> dict[str, float]:
    yes = [case for case in cases if case.answerable]
    no = [case for case in cases if not case.answerable]
    return {
        "answerable_refused": round(sum(not case.found() for case in yes) / len(yes), 4),
        "unanswerable_answered": round(sum(case.found() for case in no) / len(no), 4),
    }


def _signals(hit: Hit) -> _Signals:
    return hit.scores.nearness, hit.scores.covered, hit.scores.together


def fit(cases: Sequence[Case]) -> dict[str, list[float]]:
    """Logistic regression (both kinds of question weighing the same) on the best hit of each case."""
    fitted: dict[str, list[float]] = {}
    for name, chosen in {
        "nearness and words": [case for case in cases if case.hits and case.hits[0][0] is not None],
        "words": [case for case in cases if case.hits and case.hits[0][0] is None and case.script != "han"],
        "pairs of characters": [
            case for case in cases if case.hits and case.hits[0][0] is None and case.script == "han"
        ],
    }.items():
        rows = [
            [
                [1.0, covered, together] if nearness is None else [1.0, nearness, covered]
                for nearness, covered, together in case.hits
            ]
            for case in chosen
        ]
        fitted[name] = [round(float(w), 2) for w in _logistic(rows, [case.answerable for case in chosen])]
    return fitted


def _logistic(rows: Sequence[Sequence[Sequence[float]]], answerable: Sequence[bool]) -> Any:
    """Newton steps on the best hit of each case, chosen anew with the weights of each round."""
    labels = np.array(answerable, float)
    share = np.where(labels > 0, 0.5 / max(1, labels.sum()), 0.5 / max(1, len(labels) - labels.sum()))
    weights = np.array([-5.0, *[8.0] * (len(rows[0][0]) - 1)])
    ridge = 1e-4 * np.eye(len(weights))
    for _ in range(25):
        best = np.array([max(hits, key=lambda hit: float(np.dot(hit, weights))) for hits in rows])
        for _ in range(10):
            p = 1 / (1 + np.exp(-best @ weights))
            slope = best.T @ (share * (p - labels)) + ridge @ weights
            curve = (best.T * (share * p * (1 - p))) @ best + ridge
            step = np.linalg.solve(curve, slope)
            # A full step overshoots where nearly every case is already told apart.
            weights = weights - step / max(1.0, float(np.linalg.norm(step)))
    return weights


if __name__ == "__main__":
    main()
