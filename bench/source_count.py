"""How many sources does a question need, so that the right one is among them? By kind of question and its entropy.

    python bench/source_count.py --data DIR [--languages en,...] [--half all|tune|report] [--json FILE]

The share of queries whose right passage is among the first K hits, for each K; and the least K behind which one more
source gains less than half a point. Kinds that the data sets do not have are made of XQuAD's questions by rule:
"keywords-2" and "keywords-3" are the two or three rarest words of a question; "follow-up" is bench/follow_ups.py's,
with what the program adds; "broad" joins two questions on different articles with "Compare", and needs the passages of
both. Questions are also split by entropy. Cranfield's queries have several right passages: the share of them that is
found is given.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
from follow_ups import pairs_of
from libraries import RememberingEmbedder, document_id, library_of
from record import record
from retrieval import default_embedder, half

from edgerag.ask.follow_up import Earlier, self_contained
from edgerag.ask.pieces import pieces
from edgerag.ask.plan import make_plan, read_question
from edgerag.ask.rank import rank
from edgerag.config import RetrievalSettings
from edgerag.index.library import Library
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import Plan

LANGUAGES = ("en", "de", "es", "ru", "zh")
_MOST = 12
_LEAST_GAIN = 0.005
_BITS = (2.0, 2.5, 3.0, 3.5)  # bounds between the groups of questions by entropy
Needed = int | None  # rank of the last passage that is needed; None when it is not among the candidates


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures how many sources each kind of question needs.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--languages", default=",".join(LANGUAGES), help="of XQuAD")
    parser.add_argument("--half", choices=("all", "tune", "report"), default="tune")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    model = default_embedder()
    needed: dict[str, list[Needed]] = defaultdict(list)
    for language in arguments.languages.split(","):
        data_set = datasets.load(f"xquad-{language}", data)
        embedder = RememberingEmbedder(model, data_set.name)
        with library_of(data_set, embedder) as library:
            for kind, found in kinds_of(Searcher(library, embedder), data_set, language, arguments.half).items():
                needed[kind] += found
                needed[f"{kind} ({language})"] += found
        embedder.save()
    figures = {kind: curve(found) for kind, found in sorted(needed.items())}
    for name in ("scifact", "cranfield"):
        data_set = datasets.load(name, data)
        embedder = RememberingEmbedder(model, name)
        with library_of(data_set, embedder) as library:
            figures |= recalled(name, Searcher(library, embedder), half(data_set.queries, arguments.half))
        embedder.save()
    for kind, figure in figures.items():
        print(f"{kind:22} {figure['queries']:5}  K = {figure['enough']:2}  {figure['within']}", flush=True)
    parameters = {"half": arguments.half, "embedder": model.identity.name, "least_gain": _LEAST_GAIN}
    print(record("source_count", figures, parameters=parameters, file=arguments.json))


class Searcher:
    """Plans and ranks as the program does, without its limits on sources."""

    def __init__(self, library: Library, embedder: RememberingEmbedder) -> None:
        self.library = library
        self._embedder = embedder

    def search(self, question: str, *, added: Sequence[str] = ()) -> tuple[Plan, list[str]]:
        """The plan, and the ids of the documents found, best first."""
        settings = RetrievalSettings()
        plan = make_plan(
            read_question(question).text,
            settings=settings,
            languages=self.library.identity.languages,
            terms=self.library.query_terms,
            weigh=self.library.term_weights,
            added=added,
        )
        ranked = rank(
            plan,
            library=self.library,
            embedder=lambda: self._embedder,
            settings=settings,
            stopwatch=Stopwatch(),
            cancelled=lambda: False,
        )
        return plan, list(dict.fromkeys(document_id(hit.chunk.path) for hit in ranked.hits))


def kinds_of(searcher: Searcher, data_set: datasets.DataSet, language: str, which: str) -> Mapping[str, list[Needed]]:
    queries = half(data_set.queries, which)
    needed: dict[str, list[Needed]] = defaultdict(list)
    for index, query in enumerate(queries):
        plan, found = searcher.search(query.text)
        place = needed_rank(found, query.relevant)
        needed["question"].append(place)
        needed[f"question, {_bits_group(plan.entropy_bits)}"].append(place)
        rare = _rarest(query.text, searcher.library)
        for count in (2, 3):
            if len(rare) > count:
                _, found = searcher.search(" ".join(rare[:count]))
                needed[f"keywords-{count}"].append(needed_rank(found, query.relevant))
        other = queries[(index + len(queries) // 2) % len(queries)]
        _, found = searcher.search(f"Compare: {query.text} {other.text}")
        needed["broad"].append(needed_rank(found, query.relevant | other.relevant))
    for pair in pairs_of(queries if which == "all" else data_set.queries, language)[0 if which == "tune" else 1 :: 2]:
        asked = self_contained(
            pair.bare, earlier=[Earlier(pair.first.text, pair.first.answer)], weigh=searcher.library.term_weights
        )
        if asked.added:
            _, found = searcher.search(asked.question, added=asked.added)
            needed["follow-up"].append(needed_rank(found, pair.complete.relevant))
    return needed


def needed_rank(found: Sequence[str], relevant: frozenset[str]) -> Needed:
    """The rank of the last of ``relevant``."""
    places = {identity: place for place, identity in enumerate(found, start=1) if identity in relevant}
    return max(places.values()) if len(places) == len(relevant) else None


def curve(needed: Sequence[Needed]) -> dict[str, Any]:
    """The share of queries for which K is enough, for K from 1, and the K behind which more gain little."""
    within = [sum(place is not None and place <= k for place in needed) / len(needed) for k in range(1, _MOST + 1)]
    return {"queries": len(needed), "enough": _enough(within), "within": [round(share, 3) for share in within]}


def recalled(name: str, searcher: Searcher, queries: Sequence[datasets.Query]) -> dict[str, Any]:
    """The share of the right passages that are among the first K; for groups by entropy, of the first right one."""
    judged = [query for query in queries if query.relevant]
    shares = [0.0] * _MOST
    first: dict[str, list[Needed]] = defaultdict(list)
    for query in judged:
        plan, found = searcher.search(query.text)
        for k in range(_MOST):
            shares[k] += len(query.relevant & set(found[: k + 1])) / len(query.relevant) / len(judged)
        place = next((place for place, identity in enumerate(found, start=1) if identity in query.relevant), None)
        first[f"{name}, {_bits_group(plan.entropy_bits)}"].append(place)
    whole = {"queries": len(judged), "enough": _enough(shares), "within": [round(share, 3) for share in shares]}
    return {name: whole} | {group: curve(found) for group, found in sorted(first.items())}


def _enough(within: Sequence[float]) -> int:
    return next((k for k in range(1, _MOST) if within[k] - within[k - 1] < _LEAST_GAIN), _MOST)


def _bits_group(bits: float) -> str:
    bound = next((bound for bound in _BITS if bits < bound), None)
    return f"bits >= {_BITS[-1]}" if bound is None else f"bits < {bound}"


def _rarest(question: str, library: Library) -> list[str]:
    def rarity(piece: str) -> float:
        return max(library.term_weights(piece).values(), default=0.0)

    own = pieces(question)
    rare = sorted(own, key=rarity, reverse=True)
    return [piece for piece in rare if rarity(piece) > 0]


if __name__ == "__main__":
    main()
