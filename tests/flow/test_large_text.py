"""A text too large to be one document: read in parts, cited by the lines of the file, and after an edit read where it
was edited."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import HashingEmbedder
from flow.test_ingest import Bench

from edgerag.config import IngestSettings
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import open_library
from edgerag.ingest.parse.text_parts import WHOLE_BYTES

SETTINGS = IngestSettings(batch_chunks=1024)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    embedder = HashingEmbedder()
    (tmp_path / "docs").mkdir()
    with open_library(
        tmp_path / "library", mode="write", residency=Residency(64_000_000), identity=embedder.identity
    ) as library:
        yield Bench(tmp_path / "docs", library, embedder)


def lines_of(size_bytes: int) -> list[str]:
    """Long words, of which few fill a chunk."""
    lines = []
    for number in range(size_bytes // 1_550):
        digest = hashlib.sha256(str(number).encode()).hexdigest()
        lines.append(f"{number} {digest * 12} {digest[::-1] * 12}")
    lines[len(lines) // 2] = "The badger sleeps in the midst of the file."
    lines[-2] = "The walrus dives near the end of the file."
    return lines


@pytest.mark.long
def test_a_large_log_is_found_by_its_lines_and_read_again_where_it_changed(bench: Bench) -> None:
    lines = lines_of(WHOLE_BYTES + 1_000_000)
    path = bench.write("big.log", "\n".join(lines) + "\n")
    done = bench.run(settings=SETTINGS)
    whole = next(report for report in done.reports if report.path == str(path))
    parts = [report for report in done.reports if report is not whole]
    assert whole.reason == f"It is read in {len(parts)} parts."
    assert len(parts) >= 4 and {report.outcome for report in parts} == {"ingested"}
    for word, number in (("badger", len(lines) // 2 + 1), ("walrus", len(lines) - 1)):
        (hit,) = bench.library.search_keywords(word, limit=5)
        (found,) = bench.library.chunks([hit.chunk_id])
        assert Path(found.path).parent.name == "big.log!"
        assert found.title == "big.log"
        assert found.chunk.line_first <= number <= found.chunk.line_last
        for line, text in zip(
            range(found.chunk.line_first, found.chunk.line_last + 1), found.chunk.text.split("\n"), strict=True
        ):
            assert text.strip() in lines[line - 1]
    documents = bench.library.documents()
    texts = [bench.library.parsed_document(document.id) for document in documents]
    assert "".join(text.text for text in texts) == "\n".join(lines) + "\n"
    assert all(text.text.split("\n")[0] == lines[text.first_line - 1] for text in texts)

    bench.write("big.log", "\n".join([*lines, "A line that is new."]) + "\n")
    outcomes = list(bench.outcomes(bench.run(settings=SETTINGS)).values())
    assert outcomes.count("unchanged") == len(parts) - 1
    assert 0 < len(bench.embedder.embedded) < 60
    lines.insert(len(lines) // 2, "A line in the midst of it.")
    bench.write("big.log", "\n".join(lines) + "\n")
    bench.run(settings=SETTINGS)
    assert 0 < len(bench.embedder.embedded) < 200, "of more than nine thousand"
    assert set(bench.outcomes(bench.run(settings=SETTINGS)).values()) == {"unchanged"}
