"""Does the instant answer hold the answer? The share of questions whose gold answer stands in it, word for word.

    python bench/instant.py --data DIR [--sets xquad-en,...] [--json FILE]

Beside it what could be shown without it: the quote of the best source; and as ceilings the whole of the best
source, and all sources. Everything up to the event is the program's own flow. Constants are tuned on the even
questions ("tune"), and the odd ones are reported.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import datasets
from libraries import RememberingEmbedder, library_of
from record import record
from retrieval import default_embedder, half

from edgerag.ask.pipeline import ask
from edgerag.config import GenerationSettings, RetrievalSettings
from edgerag.index.library import Library
from edgerag.types import AskEvent, Embedder, Generator, InstantAnswer

if TYPE_CHECKING:
    from collections.abc import Generator as GeneratorOf

DEFAULT_SETS = ("xquad-en", "xquad-zh", "xquad-de", "xquad-ru", "xquad-th", "xquad-ar", "xquad-hi")


def main() -> None:
    parser = argparse.ArgumentParser(description="Judges the instant answer on public data sets.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--sets", default=",".join(DEFAULT_SETS), help=f"of {', '.join(datasets.NAMES)}")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    model = default_embedder()
    figures: dict[str, Any] = {}
    for name in arguments.sets.split(","):
        data_set = datasets.load(name, data)
        embedder = RememberingEmbedder(model, name)
        with library_of(data_set, embedder) as library:
            figures[name] = {
                which: judge(library, embedder, half(data_set.queries, which)) for which in ("tune", "report")
            }
        embedder.save()
        print(f"{name:10} {figures[name]['report']}", flush=True)
    print(record("instant", figures, parameters={"embedder": model.identity.name}, file=arguments.json))


def judge(library: Library, embedder: Embedder, queries: Sequence[datasets.Query]) -> dict[str, float]:
    """The share of ``queries`` whose answer stands in what is shown. A question that is refused counts as not."""
    held = dict.fromkeys(("instant", "first_sentence", "quote", "best_source", "all_sources"), 0)
    characters: list[int] = []
    seconds: list[float] = []
    for query in queries:
        began = time.perf_counter()
        event = instant_answer(query.text, library, embedder)
        seconds.append(time.perf_counter() - began)
        if event is None:
            continue
        characters.append(sum(len(sentence.text) for sentence in event.sentences))
        texts = [source.hit.chunk.chunk.text for source in event.sources]
        shown = {
            "instant": [sentence.text for sentence in event.sentences],
            "first_sentence": [sentence.text for sentence in event.sentences[:1]],
            "quote": [event.sources[0].quote],
            "best_source": texts[:1],
            "all_sources": texts,
        }
        for name, passages in shown.items():
            held[name] += any(query.answer in passage for passage in passages)
    return {
        **{name: round(count / len(queries), 4) for name, count in held.items()},
        "questions": len(queries),
        "refused": len(queries) - len(characters),
        "characters": round(statistics.mean(characters)),
        # Search included, the embedding of the question not: it is remembered where the set was embedded before.
        "median_ms": round(statistics.median(seconds) * 1000, 2),
        "p95_ms": round(statistics.quantiles(seconds, n=20)[-1] * 1000, 2),
    }


def instant_answer(question: str, library: Library, embedder: Embedder) -> InstantAnswer | None:
    """The event of that name, from the program's own flow; None when nothing relevant was found."""
    events = ask(
        question,
        library=library,
        embedder=lambda: embedder,
        generator=_no_generator,
        retrieval=RetrievalSettings(),
        generation=GenerationSettings(mode="instant"),
        cancelled=lambda: False,
    )
    with closing(cast("GeneratorOf[AskEvent, None, None]", events)):
        return next((event for event in events if isinstance(event, InstantAnswer)), None)


def _no_generator() -> Generator:
    raise AssertionError("the instant answer asks no chat model")


if __name__ == "__main__":
    main()
