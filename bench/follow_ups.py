"""Is a follow-up found? Questions of XQuAD made to lean on the one before, with and without the conversation.

    python bench/follow_ups.py --data DIR [--languages en,es,...] [--half all|tune|report] [--json FILE]

Made by rule: of two consecutive questions on one paragraph the second loses what both name (a run of capitalised
words), or what the second names and the first one's answer holds, and gets a pronoun for it. hit@1 of the second
question as it stands ("bare"), with what the program adds ("rewritten"), and as it was ("complete"); "recognised" is
the share to which something was added. Beside it what complete questions lose after an unrelated turn: each is asked
after a question of another article ("after_unrelated" beside "alone"; "dragged" is the share that got words of it).
Scripts without capitals get only that second part.

The first questions are those of the data set, so a rewritten one finds its paragraph also by words that the two
questions share by chance; titles and headings, which XQuAD does not have, have no part in it.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import datasets
from libraries import RememberingEmbedder, document_id, library_of
from record import record
from retrieval import default_embedder, half

from edgerag.ask.follow_up import Earlier, self_contained
from edgerag.ask.plan import make_plan, read_question
from edgerag.ask.rank import rank
from edgerag.ask.words import fold
from edgerag.config import RetrievalSettings
from edgerag.index.library import Library
from edgerag.telemetry.stopwatch import Stopwatch

LANGUAGES = ("en", "de", "es", "ro", "tr", "vi", "ru", "el", "zh", "th", "hi", "ar")
_SEED = 7
_NAME = re.compile(
    r"(?<!^)(?<![.!?¿¡] )\b(?:the )?[^\W\d_a-zа-яα-ω][\w'’-]+(?: (?:of |the |and )?[^\W\d_a-zа-яα-ω][\w'’-]+)*"
)
# What stands for the name, and its possessive.
_PRONOUNS: Mapping[str, tuple[str, str]] = {
    "en": ("it", "its"),
    "es": ("esto", "su"),
    "ro": ("acesta", "său"),
    "tr": ("o", "onun"),
    "vi": ("nó", "nó"),
    "ru": ("он", "его"),
    "el": ("αυτό", "αυτό"),
}  # not German, whose nouns all have capitals


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions in a row, the second as it was and made to lean on the first."""

    first: datasets.Query
    complete: datasets.Query
    bare: str


def main() -> None:
    parser = argparse.ArgumentParser(description="Judges how follow-ups are made self-contained.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--languages", default=",".join(LANGUAGES))
    parser.add_argument("--half", choices=("all", "tune", "report"), default="report")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    model = default_embedder()
    figures: dict[str, Any] = {}
    for language in arguments.languages.split(","):
        data_set = datasets.load(f"xquad-{language}", data)
        embedder = RememberingEmbedder(model, data_set.name)
        with library_of(data_set, embedder) as library:
            judge = Judge(library, embedder)
            pairs = pairs_of(data_set.queries, language)
            pairs = [
                pair
                for index, pair in enumerate(pairs)
                if arguments.half == "all" or index % 2 == (arguments.half == "report")
            ]
            figures[language] = judge.follow_ups(pairs) | judge.unrelated(
                data_set, half(data_set.queries, arguments.half)
            )
        embedder.save()
        print(f"{language:3} {figures[language]}", flush=True)
    parameters = {"half": arguments.half, "embedder": model.identity.name, "seed": _SEED}
    print(record("follow_ups", figures, parameters=parameters, file=arguments.json))


def pairs_of(queries: Sequence[datasets.Query], language: str) -> list[Pair]:
    """The pairs whose second question can be made to lean on the first."""
    if language not in _PRONOUNS:
        return []
    pairs = []
    for first, second in pairwise(queries):
        if first.relevant != second.relevant:
            continue
        said = fold(f"{first.text} {first.answer}")
        names = sorted(
            (m for m in _NAME.finditer(second.text) if fold(m[0].removeprefix("the ")) in said),
            key=lambda m: -len(m[0]),
        )
        if not names:
            continue
        pronoun, possessive = _PRONOUNS[language]
        start, end = names[0].span()
        owned = re.match(r"['’]s?(?= )", second.text[end:])
        bare = (
            second.text[:start]
            + (possessive if owned else pronoun)
            + second.text[end + (owned.end() if owned else 0) :]
        )
        pairs.append(Pair(first, second, bare))
    return pairs


class Judge:
    def __init__(self, library: Library, embedder: RememberingEmbedder) -> None:
        self._library = library
        self._embedder = embedder
        self._hits: dict[str, str] = {}

    def follow_ups(self, pairs: Sequence[Pair]) -> dict[str, Any]:
        if not pairs:
            return {}
        sums = dict.fromkeys(("bare", "rewritten", "complete", "recognised"), 0)
        for pair in pairs:
            found = self_contained(
                pair.bare, earlier=[Earlier(pair.first.text, pair.first.answer)], weigh=self._library.term_weights
            )
            sums["bare"] += self._first(pair.bare) in pair.complete.relevant
            sums["rewritten"] += self._first(found.question, found.added) in pair.complete.relevant
            sums["complete"] += self._first(pair.complete.text) in pair.complete.relevant
            sums["recognised"] += bool(found.added)
        return {"pairs": len(pairs)} | {name: round(count / len(pairs), 4) for name, count in sums.items()}

    def unrelated(self, data_set: datasets.DataSet, queries: Sequence[datasets.Query]) -> dict[str, Any]:
        articles = {text.id: text.article for text in data_set.texts}
        rng = random.Random(_SEED)
        sums = dict.fromkeys(("alone", "after_unrelated", "dragged"), 0)
        for query in queries:
            article = articles[next(iter(query.relevant))]
            while articles[next(iter((other := rng.choice(data_set.queries)).relevant))] == article:
                pass
            found = self_contained(
                query.text, earlier=[Earlier(other.text, other.answer)], weigh=self._library.term_weights
            )
            sums["alone"] += self._first(query.text) in query.relevant
            sums["after_unrelated"] += self._first(found.question, found.added) in query.relevant
            sums["dragged"] += bool(found.added)
        return {"questions": len(queries)} | {name: round(count / len(queries), 4) for name, count in sums.items()}

    def _first(self, question: str, added: Sequence[str] = ()) -> str:
        """The id of the first document found."""
        plan = make_plan(
            read_question(question).text,
            settings=RetrievalSettings(),
            languages=self._library.identity.languages,
            terms=self._library.query_terms,
            added=added,
        )
        if plan.question not in self._hits:
            ranked = rank(
                plan,
                library=self._library,
                embedder=lambda: self._embedder,
                settings=RetrievalSettings(),
                stopwatch=Stopwatch(),
                cancelled=lambda: False,
            )
            self._hits[plan.question] = document_id(ranked.hits[0].chunk.path) if ranked.hits else ""
        return self._hits[plan.question]


if __name__ == "__main__":
    main()
