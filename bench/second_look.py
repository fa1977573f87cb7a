"""Does a second look make the order better, and what does it cost?

    python bench/second_look.py [--data DIR] [--sets scifact,cranfield,xquad-en,tatqa] [--queries N]
                                [--by likelihood|yes_no|reranker] [--model NAME|FILE] [--budget-ms MS] [--rows FILE]

Each question is ranked as `edgerag search` does it; the model then judges the first candidates, and nothing of what it
computed is kept for the next question. By set: hit@1 and nDCG@10 without and with the second look for every weight, of
the half that a weight is chosen by ("tune") and of the other ("report"), and by the model's word alone. Then, for some
questions, under a budget: how many passages were looked at, in what time; and what one takes whose state is known.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
from record import CHECKOUT, record
from retrieval import default_embedder, half, ndcg
from train_reranker import library_for

from edgerag.ask.chat_judges import Likelihood, YesNo
from edgerag.ask.plan import make_plan, read_question
from edgerag.ask.rank import Ranked, rank
from edgerag.ask.second_look import SecondLook, fused, look_again
from edgerag.config import RetrievalSettings, Settings, load_settings
from edgerag.engine.catalog import Catalog
from edgerag.engine.opening import open_chat_model, open_reranking_model
from edgerag.engine.states.store import StateStore
from edgerag.engine.tuning.record import Tunings
from edgerag.index.library import Library
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import Embedder, Hit, Judgement, PassageCost, Plan, Reranker, SecondLookBy

SETS = ("scifact", "cranfield", "xquad-en", "tatqa")
WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)
ALONE = math.inf  # the model's word, and the order before only where it says the same of two
_BUDGETED = 10  # questions of each set that are asked again under a budget


@dataclasses.dataclass(frozen=True, slots=True)
class Looked:
    """One question: its hits as ranked, what the model says of the first, and the time for each."""

    hits: tuple[Hit, ...]
    judgements: tuple[Judgement, ...]
    seconds: tuple[float, ...]
    relevant: frozenset[str]

    def order(self, weight: float) -> list[str]:
        """The documents by both judgements."""
        count = len(self.judgements)
        if weight == ALONE:
            pairs = zip(self.hits[:count], self.judgements, strict=True)
            first = [hit for hit, _ in sorted(pairs, key=lambda pair: -pair[1].log_odds)]
        else:
            first = list(fused(self.hits[:count], self.judgements, weight=weight))
        return list(dict.fromkeys(_document(hit) for hit in (*first, *self.hits[count:])))


@dataclasses.dataclass(slots=True)
class OwnCosts:
    """Forgets with the process."""

    known: dict[str, PassageCost] = dataclasses.field(default_factory=dict)

    def find(self, name: str) -> PassageCost | None:
        return self.known.get(name)

    def keep(self, name: str, cost: PassageCost) -> None:
        self.known[name] = cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--queries", type=int, default=40, help="of each half of a set (40)")
    parser.add_argument("--count", type=int, default=RetrievalSettings().second_look_count, help="candidates judged")
    parser.add_argument("--by", choices=("likelihood", "yes_no", "reranker"), default="likelihood")
    parser.add_argument("--model", default="", help="a name from `models list`, or a file")
    parser.add_argument("--budget-ms", type=int, default=RetrievalSettings().second_look_ms)
    parser.add_argument("--rows", type=Path, help="writes what was judged, a line of JSON for each question")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    embedder = default_embedder()
    by: SecondLookBy = arguments.by
    with tempfile.TemporaryDirectory() as folder:
        states = StateStore(Path(folder), ram_bytes=300_000_000, disk_bytes=0)
        reranker = _open(by, arguments.model, states)
        figures: dict[str, Any] = {}
        for name in arguments.sets.split(","):
            chosen = datasets.load(name, data)
            with library_for(chosen, "chunked", embedder) as library:
                bench = _Bench(library, embedder, reranker, states, arguments.count, arguments.rows)
                figures[name] = bench.figures(name, chosen.queries, arguments.queries, arguments.budget_ms, by)
            parameters = {
                "by": by,
                "model": reranker.name,
                "candidates": arguments.count,
                "queries_per_half": arguments.queries,
                "budget_ms": arguments.budget_ms,
            }
            # After each set: it takes long, and what is done is done.
            print(record(f"second_look_{by}", figures, parameters=parameters), flush=True)


class _Bench:
    def __init__(
        self,
        library: Library,
        embedder: Embedder,
        reranker: Reranker,
        states: StateStore,
        count: int,
        rows: Path | None,
    ) -> None:
        self._library, self._embedder, self._reranker = library, embedder, reranker
        self._states, self._count, self._rows = states, count, rows

    def figures(
        self, name: str, queries: Sequence[datasets.Query], count: int, budget_ms: int, by: SecondLookBy
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        seconds: list[float] = []
        for part in ("tune", "report"):
            asked = [query for query in half(queries, part) if query.relevant]
            asked = asked[:: max(1, len(asked) // count)][:count]
            looked = []
            for query in asked:
                looked.append(self._look(query))
                seconds += looked[-1].seconds
                if self._rows is not None:
                    _write(name, part, looked[-1], self._rows)
            table = {str(weight): _quality(looked, weight) for weight in (*WEIGHTS, ALONE)}
            found[part] = {"queries": len(asked), "by_weight": table}
            print(name, part, *(f"{weight}: {row}" for weight, row in table.items()), sep="\n  ", flush=True)
        seconds.sort()
        found["ms_per_passage"] = {
            "median": round(1000 * statistics.median(seconds), 1),
            "p90": round(1000 * seconds[int(0.9 * len(seconds))], 1),
        }
        found["known_passage_ms"] = self._known(queries[1], queries[3])
        found["budget"] = self._budget(half(queries, "report")[:_BUDGETED], budget_ms, by)
        print(name, found["ms_per_passage"], found["known_passage_ms"], found["budget"], flush=True)
        return found

    def _look(self, query: datasets.Query) -> Looked:
        plan, ranked = self._ranked(query)
        self._states.drop_all()
        judgements, seconds = [], []
        for hit in ranked.hits[: self._count]:
            began = time.perf_counter()
            judgements.append(self._judge(plan, hit))
            seconds.append(time.perf_counter() - began)
        return Looked(ranked.hits, tuple(judgements), tuple(seconds), query.relevant)

    def _judge(self, plan: Plan, hit: Hit) -> Judgement:
        return self._reranker.judge(plan.question, hit.chunk, cancelled=lambda: False)

    def _known(self, first: datasets.Query, second: datasets.Query) -> float:
        """Median milliseconds for passages that were judged for another question before."""
        _, ranked = self._ranked(first)
        other, _ = self._ranked(second)
        self._states.drop_all()
        self._states.begin()
        for hit in ranked.hits[: self._count]:
            self._judge(other, hit)
        plan, _ = self._ranked(first)
        times = []
        for hit in ranked.hits[: self._count]:
            began = time.perf_counter()
            self._judge(plan, hit)
            times.append(time.perf_counter() - began)
        return round(1000 * statistics.median(times), 1)

    def _budget(self, queries: Sequence[datasets.Query], budget_ms: int, by: SecondLookBy) -> dict[str, Any]:
        settings = RetrievalSettings(second_look_ms=budget_ms, second_look_count=self._count)
        second_look = SecondLook(by, lambda: self._reranker, OwnCosts())
        counts, times = [], []
        for query in queries:
            plan, ranked = self._ranked(query)
            self._states.drop_all()
            stopwatch = Stopwatch()
            after = look_again(
                plan,
                ranked,
                second_look=second_look,
                settings=settings,
                stopwatch=stopwatch,
                cancelled=lambda: False,
            )
            spent = {each.stage: each.seconds for each in stopwatch.times()}
            if "second_look" in spent:
                counts.append(sum(hit.scores.second_look is not None for hit in after.hits))
                times.append(1000 * spent["second_look"])
        return {
            "ms": budget_ms,
            "looked_at": counts,
            "took_ms": [round(each) for each in times],
        }

    def _ranked(self, query: datasets.Query) -> tuple[Plan, Ranked]:
        settings = RetrievalSettings(vector_deadline_ms=0)
        plan = make_plan(
            read_question(query.text).text,
            settings=settings,
            languages=self._library.identity.languages,
            terms=self._library.query_terms,
            weigh=self._library.term_weights,
        )
        ranked = rank(
            plan,
            library=self._library,
            embedder=lambda: self._embedder,
            settings=settings,
            stopwatch=Stopwatch(),
            cancelled=lambda: False,
        )
        return plan, ranked


def _open(by: SecondLookBy, name: str, states: StateStore) -> Reranker:
    catalog = Catalog(CHECKOUT / "models", CHECKOUT / "models" / "manifest.toml")
    settings: Settings = load_settings(CHECKOUT / "config.toml", os.environ, {})
    if by == "reranker":
        return open_reranking_model(catalog.find("reranker", name), machine=settings.machine)
    model = catalog.find("chat", name)
    generator = open_chat_model(
        model,
        tunings=Tunings(catalog.folder),
        machine=settings.machine,
        generation=settings.generation,
        states=states,
    )
    return YesNo(generator) if by == "yes_no" else Likelihood(generator)


def _quality(all_looked: Sequence[Looked], weight: float) -> dict[str, float]:
    orders = [(looked.order(weight), looked.relevant) for looked in all_looked]
    return {
        "hit@1": round(statistics.mean(float(order[0] in relevant) for order, relevant in orders), 4),
        "ndcg@10": round(statistics.mean(ndcg(order[:10], relevant) for order, relevant in orders), 4),
    }


def _write(name: str, part: str, looked: Looked, file: Path) -> None:
    first = looked.hits[: len(looked.judgements)]
    row = {
        "set": name,
        "part": part,
        "reranked": [hit.scores.reranked for hit in first],
        "log_odds": [judgement.log_odds for judgement in looked.judgements],
        "relevant": [_document(hit) in looked.relevant for hit in first],
        "documents": [_document(hit) for hit in looked.hits],
        "wanted": len(looked.relevant),
        "seconds": looked.seconds,
    }
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")


def _document(hit: Hit) -> str:
    return hit.chunk.path.removeprefix("/")


if __name__ == "__main__":
    main()
