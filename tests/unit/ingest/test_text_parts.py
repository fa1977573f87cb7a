"""A large text in parts: the same text, lines and columns, and the same parts after an edit elsewhere."""

from __future__ import annotations

import hashlib
import io
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ingest.parse import reader as reader_module
from edgerag.ingest.parse import text, text_parts
from edgerag.ingest.parse.reader import Reader
from edgerag.ingest.parse.sniff import Format
from edgerag.ingest.parse.source import Source
from edgerag.ingest.parse.wire import Failed, Parsed, Request, Unchanged
from edgerag.types import ParsedDocument


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_parts, "WHOLE_BYTES", 10_000)
    monkeypatch.setattr(text_parts, "_LEAST", 2_000)
    monkeypatch.setattr(text_parts, "_MOST", 6_000)
    monkeypatch.setattr(text_parts, "_ANCHOR_MASK", 7)


def log(count: int, seed: int = 1) -> list[str]:
    pick = random.Random(seed)
    words = ("opened", "closed", "zählt", "失敗", "a", "valve", "pump")
    return [
        f"{n} {pick.randrange(10**6)} " + " ".join(pick.choices(words, k=pick.randrange(1, 20))) for n in range(count)
    ]


def documents(data: bytes, name: str = "big.log", format_: Format = "text") -> list[ParsedDocument]:
    container, sha256 = text_parts.open_parts(lambda: io.BytesIO(data), name, format_)
    assert sha256 == hashlib.sha256(data).hexdigest()
    assert container.parse_part is not None
    return [container.parse_part(part, container.read(part, 10**9)) for part in container.members]


@pytest.mark.usefixtures("small_parts")
class TestParts:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "gb18030"])
    @pytest.mark.parametrize("ending", ["\n", "\r\n"])
    def test_together_they_are_the_text_and_count_its_lines(self, encoding: str, ending: str) -> None:
        lines = log(600)
        if encoding == "gb18030":
            lines = [f"{n} 第{n}条：水泵已打开，阀门在那之后没有再关上，所以我们要检查它。" for n in range(600)]
        data = ending.join(lines).encode(encoding)
        found = documents(data)
        assert len(found) > 4
        assert "".join(part.text for part in found) == "\n".join(lines) == text.parse(Source(data, "big.log")).text
        for part in found:
            assert part.text.split("\n")[0] == lines[part.first_line - 1]
            assert part.title == "big.log"

    @given(st.binary(max_size=40_000), st.integers(0, 3))
    def test_any_bytes_are_all_in_some_part(self, data: bytes, blocks: int) -> None:
        data = data * blocks + data
        container, _ = text_parts.open_parts(lambda: io.BytesIO(data), "x.txt", "text")
        pieces = [container.read(part, 10**9) for part in container.members]
        assert b"".join(pieces) == data
        assert all(0 < len(piece) <= 6_000 for piece in pieces)

    def test_one_endless_line_is_cut_between_words(self) -> None:
        words = "größer " * 4_000
        assert "".join(part.text for part in documents(words.encode())) == words
        letters = "ü" * 20_000
        assert "".join(part.text for part in documents(letters.encode())) == letters

    @pytest.mark.parametrize("place", [0, 300, 599])
    def test_after_an_edit_the_other_parts_are_what_they_were(self, place: int) -> None:
        before = log(600)
        after = [*before[:place], "a line that is new", *before[place:]]
        old, new = ([part.text for part in documents("\n".join(lines).encode())] for lines in (before, after))
        assert len(set(new) - set(old)) <= 2

    def test_lines_that_are_appended_change_the_last_part_alone(self) -> None:
        old = [part.text for part in documents(("\n".join(log(600)) + "\n").encode())]
        new = [part.text for part in documents(("\n".join(log(600)) + "\nmore\nand more\n").encode())]
        assert new[: len(old) - 1] == old[:-1]

    def test_the_columns_of_a_table_stand_over_all_of_its_rows(self) -> None:
        rows = ["name,height,colour", *(f"thing {n},{n * 7},red" for n in range(2_000))]
        found = documents("\n".join(rows).encode(), "table.csv", "csv")
        assert len(found) > 3
        titles = [[heading.title for heading in part.headings] for part in found]
        assert titles[0] and all(title == titles[0] for title in titles)

    def test_json_lines_are_cut_between_records(self) -> None:
        rows = [f'{{"n": {n}, "text": "caf\\u00e9 {n}"}}' for n in range(1_000)]
        found = documents("\n".join(rows).encode(), "rows.jsonl", "structured")
        assert len(found) > 3
        assert {part.media_type for part in found} == {"application/jsonl"}
        lines = "".join(part.text for part in found).split("\n")
        assert lines[999] == '{"n": 999, "text": "café 999"}'


def ask(reader: Reader, path: Path, *member: str, known: str = "", **more: int) -> object:
    return reader.read(Request(str(path), known, more.pop("max_bytes", 10**9), 10, member, **more))


@pytest.mark.usefixtures("small_parts")
class TestReading:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "big.log"
        path.write_text("\n".join(log(2_500)))
        return path

    def test_the_limit_for_files_is_not_that_for_parts(self, path: Path) -> None:
        opened = ask(Reader(), path, max_bytes=1000)
        assert isinstance(opened, Parsed) and opened.in_parts
        refused = ask(Reader(), path, max_text_bytes=1000)
        assert isinstance(refused, Failed) and refused.skipped
        assert "ingest.max_text_size" in str(refused.error) and "the limit is 1,000" in str(refused.error)

    def test_a_part_that_did_not_change_is_told(self, path: Path) -> None:
        reader = Reader()
        part = ask(reader, path, "part 0002")
        assert isinstance(part, Parsed) and part.document is not None
        assert isinstance(ask(reader, path, "part 0002", known=part.state.sha256), Unchanged)

    def test_a_log_that_grows_meanwhile_is_read_as_far_as_it_went(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reader = Reader()
        opened = ask(reader, path)
        assert isinstance(opened, Parsed)
        with path.open("a") as file:
            file.write("\none more line")
        monkeypatch.setattr(reader_module, "open_parts", lambda *_: pytest.fail("it is not read from its beginning"))
        for name in opened.members:
            part = ask(reader, path, name)
            assert isinstance(part, Parsed) and part.document is not None
            assert "one more line" not in part.document.text
            assert part.state.size_bytes == opened.state.size_bytes, "the next run sees that it changed"

    def test_a_large_text_in_an_archive_is_in_parts_too(self, tmp_path: Path) -> None:
        from unit.ingest import craft

        path = tmp_path / "box.zip"
        path.write_bytes(craft.archive({"big.log": "\n".join(log(2_500))}))
        reader = Reader()
        inner = ask(reader, path, "big.log")
        assert isinstance(inner, Parsed) and inner.in_parts
        part = ask(reader, path, "big.log", inner.members[-1])
        assert isinstance(part, Parsed) and part.document is not None
        assert part.document.text.endswith(log(2_500)[-1])


def peak_bytes(path: Path) -> int:
    tracemalloc.start()
    try:
        reader = Reader()
        opened = ask(reader, path)
        assert isinstance(opened, Parsed)
        for name in opened.members:
            assert isinstance(ask(reader, path, name), Parsed)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def large_lines(size_bytes: int) -> Iterator[str]:
    line = "the pump was opened and closed again, and nothing came of it"
    for number in range(size_bytes // (len(line) + 10)):
        yield f"{number:08d} {line}\n"


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = []
    for size in (17_000_000, 34_000_000):
        path = tmp_path / f"{size}.log"
        with path.open("w") as file:
            file.writelines(large_lines(size))
        peaks.append(peak_bytes(path))
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 40_000_000
