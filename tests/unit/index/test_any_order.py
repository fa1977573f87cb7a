"""Whatever is done to a library in whatever order, it holds and finds what a plain list of texts would."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.types import Filter

DOCUMENTS = st.integers(0, 4)
TAGS = st.sampled_from(["red", "green"])
STEPS = st.one_of(
    st.tuples(st.just("put"), DOCUMENTS, st.lists(st.integers(0, 60), unique=True, max_size=30)),
    st.tuples(st.just("remove"), DOCUMENTS),
    st.tuples(st.just("tag"), DOCUMENTS, TAGS),
    st.tuples(st.just("untag"), DOCUMENTS, TAGS),
    st.tuples(st.just("embed")),
    st.tuples(st.just("seal"), st.booleans(), st.integers(0, 12)),
    st.tuples(st.just("compact"), st.integers(0, 12)),
    st.tuples(st.just("reopen")),
)


class Model:
    """What the library should hold: texts, and tags, by number of the document."""

    def __init__(self) -> None:
        self.texts: dict[int, list[str]] = {}
        self.tags: dict[int, set[str]] = {}

    def found(self, *, tag: str | None = None, folder: int | None = None) -> list[tuple[int, str]]:
        return sorted(
            (number, text)
            for number, texts in self.texts.items()
            for text in texts
            if (tag is None or tag in self.tags[number]) and (folder is None or number % 2 == folder)
        )


def act(library: Library, model: Model, step: tuple[Any, ...], material: Any) -> None:
    def stop_at(left: int) -> Any:
        count = iter(range(10**9))
        return lambda: next(count) >= left

    match step:
        case ("put", number, words):
            texts = [f"word{word} of {number}" for word in words]
            material.put(library, path(number), texts)
            model.texts[number] = texts
            model.tags.setdefault(number, set())
        case ("remove", number):
            if number in model.texts:
                library.remove_documents([id_of(library, number)])
                del model.texts[number], model.tags[number]
        case ("tag", number, tag):
            if number in model.texts:
                library.tag_documents([id_of(library, number)], [tag])
                model.tags[number].add(tag)
        case ("untag", number, tag):
            if number in model.texts:
                library.untag_documents([id_of(library, number)], [tag])
                model.tags[number].discard(tag)
        case ("embed",):
            material.embed_pending(library)
        case ("seal", merge, stop):
            assert library.seal(merge=merge, cancelled=stop_at(stop)).damaged == ()
        case ("compact", stop):
            assert library.compact(cancelled=stop_at(stop)).damaged == ()


def path(number: int) -> str:
    return f"/docs/{number % 2}/{number}"


def id_of(library: Library, number: int) -> int:
    document = library.document_by_path(path(number))
    assert document is not None
    return document.id


def seen(library: Library, material: Any, where: Filter | None) -> list[tuple[int, str]]:
    """Everything that a search by meaning can give."""
    hits = library.search_vectors(material.vector("q"), limit=1000, ef_search=10, where=where)
    assert len({hit.chunk_id for hit in hits}) == len(hits)
    return sorted((int(Path(c.path).name), c.chunk.text) for c in library.chunks([hit.chunk_id for hit in hits]))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=14))
def test_the_library_follows_its_model(steps: list[tuple[Any, ...]], material: Any) -> None:
    sizes = dataclasses.replace(material.small, max_rows=45)
    with TemporaryDirectory() as name:
        folder = Path(name) / "lib"

        def open_it(mode: Any) -> Library:
            return open_library(
                folder, mode=mode, residency=Residency(10**9), identity=material.identity, seal_settings=sizes
            )

        model, library = Model(), open_it("write")
        reader = open_it("read")
        try:
            for step in steps:
                if step[0] == "reopen":
                    library.close()
                    library = open_it("write")
                act(library, model, step, material)
            material.embed_pending(library)
            for each in (library, reader):
                assert seen(each, material, None) == model.found()
                for tag in ("red", "green"):
                    assert seen(each, material, Filter(tags=(tag,))) == model.found(tag=tag)
                    where = Filter(paths=("/docs/1",), tags=(tag,))
                    assert seen(each, material, where) == model.found(tag=tag, folder=1)
            assert library.compact().cancelled is False
            assert seen(reader, material, None) == model.found()
            total = len(model.found())
            assert [s.dead_count for s in library.status().segments] == [0] * -(-total // 45)
            assert {finding.severity for finding in library.verify()} == {"ok"}
        finally:
            reader.close()
            library.close()
