"""Do several libraries asked together find what one library with all of their documents finds?

    python bench/several_libraries.py --data DIR [--splits halves,cranfield] [--limit N] [--json FILE]

Two splits: the articles of XQuAD-en into two halves, and XQuAD-en beside Cranfield (another subject, longer texts, six
times as many). Each is asked as one library, and as a shelf of two; "as they come" merges the keyword legs by the
scores that each library gave them.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import datasets
from datasets import DataSet, Query, Text
from libraries import RememberingEmbedder, library_of
from record import record
from retrieval import default_embedder, judge

from edgerag.index.library import Library
from edgerag.index.shelf import Shelf, merged
from edgerag.types import Embedder, Filter, LegHit


class AsTheyCome(Shelf):
    """BM25 of each library by its own rarity of words."""

    def search_keywords(self, query: str, *, limit: int, where: Filter | None = None) -> list[LegHit]:
        search = partial(Library.search_keywords, query=query, limit=limit, where=where)
        return merged((place.hits(hits) for place, hits in self._each(search)), limit=limit)


def main() -> None:
    parser = argparse.ArgumentParser(description="Judges several libraries asked as one.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--splits", default="halves,cranfield", help="of halves, cranfield")
    parser.add_argument("--limit", type=int, default=10**9, help="queries per set at most")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    xquad, cranfield = datasets.load("xquad-en", data), datasets.load("cranfield", data)
    model = default_embedder()
    splits = {"halves": _halves(xquad), "cranfield": [_named(xquad, "x"), _named(cranfield, "c")]}
    figures = {name: compare(splits[name], model, arguments.limit) for name in arguments.splits.split(",")}
    print(record("several-libraries", figures, parameters={"limit": arguments.limit}, file=arguments.json))


def _halves(whole: DataSet) -> list[DataSet]:
    """By article; each half keeps the questions about it."""
    halves = []
    for half in (0, 1):
        texts = tuple(text for text in whole.texts if text.article % 2 == half)
        ids = {text.id for text in texts}
        halves.append(DataSet(f"half-{half}", texts, tuple(query for query in whole.queries if query.relevant & ids)))
    return halves


def _named(data_set: DataSet, prefix: str) -> DataSet:
    """With ids that no other set has."""
    texts = tuple(dataclasses.replace(text, id=f"{prefix}{text.id}") for text in data_set.texts)
    queries = tuple(
        dataclasses.replace(query, relevant=frozenset(f"{prefix}{identity}" for identity in query.relevant))
        for query in data_set.queries
    )
    return DataSet(f"{prefix}-{data_set.name}", texts, queries)


def compare(parts: Sequence[DataSet], model: Embedder, limit: int) -> dict[str, Any]:
    """By part whose queries are asked, then by how the libraries are asked."""
    everything: tuple[Text, ...] = tuple(text for part in parts for text in part.texts)
    embedder = RememberingEmbedder(model, "several-libraries")
    figures: dict[str, Any] = {}
    with ExitStack() as stack:
        one = stack.enter_context(library_of(DataSet("one", everything, ()), embedder))
        readers = {part.name: stack.enter_context(library_of(part, embedder)) for part in parts}
        openers = {name: partial(_itself, reader) for name, reader in readers.items()}
        asked: dict[str, Library | Shelf] = {"one library": one}
        for name, kind in (("shelf", Shelf), ("as they come", AsTheyCome)):
            shelf = kind(openers, in_use=lambda: embedder.identity)
            shelf.begin()
            asked[name] = shelf
        for part in parts:
            queries: Sequence[Query] = part.queries[:limit]
            figures[part.name] = {name: judge(library, embedder, queries) for name, library in asked.items()}
            for name, judged in figures[part.name].items():
                keyword, fused = judged["keyword"], judged["fused"]
                print(
                    f"{part.name:12} {len(queries):5} queries  {name:14} keyword hit@1 {keyword['hit@1']:.4f}  "
                    f"fused hit@1 {fused['hit@1']:.4f} hit@5 {fused['hit@5']:.4f} nDCG@10 {fused['ndcg@10']:.4f}  "
                    f"{judged['fused_median_ms']} ms",
                    flush=True,
                )
    embedder.save()
    return figures


def _itself(library: Library) -> Library:
    return library


if __name__ == "__main__":
    main()
