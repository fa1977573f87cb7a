from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from unit.ingest.craft import archive
from unit.ingest.mail_craft import HEAD, PLAIN, attachment, parts

from edgerag.errors import (
    DocumentDamaged,
    DocumentError,
    DocumentGone,
    DocumentTooLarge,
    DocumentUnsupported,
    ParserDied,
)
from edgerag.ingest.parse import reader as module
from edgerag.ingest.parse.reader import Reader
from edgerag.ingest.parse.sniff import Format
from edgerag.ingest.parse.source import Container, Source
from edgerag.ingest.parse.wire import Failed, Parsed, Reply, Request, Unchanged

TABLE = b"a,b\n1,2\n"


def ask(reader: Reader, path: Path, *member: str, known: str = "", max_bytes: int = 10_000_000) -> Reply:
    return reader.read(Request(path=str(path), known_sha256=known, max_bytes=max_bytes, seconds=10, member=member))


def parsed(reply: Reply) -> Parsed:
    assert isinstance(reply, Parsed), reply
    return reply


def text(reply: Reply) -> str:
    document = parsed(reply).document
    assert document is not None
    return document.text


def failed(reply: Reply, kind: type[DocumentError]) -> Failed:
    assert isinstance(reply, Failed), reply
    assert type(reply.error) is kind
    return reply


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A zip that holds a text and a mail to which a zip is attached."""
    inner = archive({"table.txt": TABLE, "deep/note.txt": b"The deepest note"})
    mail = parts("mixed", PLAIN, attachment("filename=inner.zip", inner))
    path = tmp_path / "bundle.zip"
    path.write_bytes(
        archive({"first.txt": b"The first text", "mail.eml": mail, "second.zip": archive({"x.txt": b"x"})})
    )
    return path


def test_every_level_tells_what_is_in_the_next(bundle: Path) -> None:
    reader = Reader()
    outer = parsed(ask(reader, bundle))
    assert outer.document is None
    assert outer.members == ("first.txt", "mail.eml", "second.zip")
    assert text(ask(reader, bundle, "first.txt")) == "The first text"
    mail = parsed(ask(reader, bundle, "mail.eml"))
    assert mail.members == ("inner.zip",)
    assert text(mail).endswith("Plain words.")
    assert parsed(ask(reader, bundle, "mail.eml", "inner.zip")).members == ("table.txt", "deep/note.txt")
    assert text(ask(reader, bundle, "mail.eml", "inner.zip", "deep/note.txt")) == "The deepest note"


def test_a_member_is_found_without_those_around_it_having_been_asked_for(bundle: Path) -> None:
    assert text(ask(Reader(), bundle, "mail.eml", "inner.zip", "deep/note.txt")) == "The deepest note"
    reader = Reader()
    for member, expected in (
        (("mail.eml", "inner.zip", "deep/note.txt"), "The deepest note"),
        (("second.zip", "x.txt"), "x"),
        (("first.txt",), "The first text"),
        (("mail.eml", "inner.zip", "deep/note.txt"), "The deepest note"),
    ):
        assert text(ask(reader, bundle, *member)) == expected


def test_the_state_of_a_member_has_its_own_checksum_and_the_time_of_the_file(bundle: Path) -> None:
    outer, member = parsed(ask(Reader(), bundle)).state, parsed(ask(Reader(), bundle, "first.txt")).state
    assert member.sha256 != outer.sha256
    assert (member.size_bytes, member.mtime_ns) == (outer.size_bytes, outer.mtime_ns)


def test_a_member_that_is_known_is_unchanged_also_where_the_file_around_it_changed(bundle: Path) -> None:
    known = parsed(ask(Reader(), bundle, "first.txt")).state.sha256
    assert isinstance(ask(Reader(), bundle, "first.txt", known=known), Unchanged)
    bundle.write_bytes(archive({"new.txt": b"new", "first.txt": b"The first text"}))
    assert isinstance(ask(Reader(), bundle, "first.txt", known=known), Unchanged)
    bundle.write_bytes(archive({"first.txt": b"Another text"}))
    assert text(ask(Reader(), bundle, "first.txt", known=known)) == "Another text"


def test_a_member_that_is_missing_is_no_lasting_failure(bundle: Path) -> None:
    reply = failed(ask(Reader(), bundle, "other.txt"), DocumentDamaged)
    assert "other.txt" in reply.error.message
    assert not reply.lasting and not reply.skipped
    for member in (("first.txt", "x"), ("other.zip", "x"), ("mail.eml", "inner.zip", "gone.txt")):
        assert not failed(ask(Reader(), bundle, *member), DocumentDamaged).skipped


def test_a_file_that_changes_between_two_members_is_read_anew(bundle: Path) -> None:
    reader = Reader()
    assert text(ask(reader, bundle, "first.txt")) == "The first text"
    bundle.write_bytes(archive({"first.txt": b"Quite another text", "more.txt": b"more"}))
    assert text(ask(reader, bundle, "first.txt")) == "Quite another text"
    assert not failed(ask(reader, bundle, "mail.eml"), DocumentDamaged).lasting
    bundle.write_text("no archive any more")
    assert not failed(ask(reader, bundle, "first.txt"), DocumentDamaged).lasting
    bundle.unlink()
    assert not failed(ask(reader, bundle, "first.txt"), DocumentGone).lasting


def test_two_files_are_not_taken_for_each_other(bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    other.write_bytes(archive({"first.txt": b"Of the other"}))
    reader = Reader()
    for _ in range(2):
        assert text(ask(reader, bundle, "first.txt")) == "The first text"
        assert text(ask(reader, other, "first.txt")) == "Of the other"


def test_archives_in_archives_end_at_a_depth(tmp_path: Path) -> None:
    data = archive({"deepest.txt": b"too deep"})
    for _ in range(4):
        data = archive({"in.zip": data})
    path = tmp_path / "deep.zip"
    path.write_bytes(data)
    reader = Reader()
    assert parsed(ask(reader, path, "in.zip", "in.zip", "in.zip")).members == ("in.zip",)
    reply = failed(ask(reader, path, "in.zip", "in.zip", "in.zip", "in.zip"), DocumentUnsupported)
    assert "more than 3 archives" in reply.error.message
    assert reply.skipped


def test_an_archive_that_holds_itself_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(archive({"a.zip": archive({"a.zip": archive({"a.zip": archive({"a.zip": b"PK\x03\x04"})})})}))
    reader = Reader()
    member: tuple[str, ...] = ()
    while isinstance(reply := ask(reader, path, *member), Parsed):
        member = (*member, *reply.members)
    assert len(member) <= 4
    assert isinstance(reply, Failed)


def test_a_member_beyond_the_limit_is_skipped_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(archive({"large.txt": b"words " * 10_000, "small.txt": b"small"}))
    reader = Reader()
    reply = failed(ask(reader, path, "large.txt", max_bytes=5_000), DocumentTooLarge)
    assert reply.skipped and "ingest.max_file_size" in reply.error.remedy
    assert text(ask(reader, path, "small.txt", max_bytes=5_000)) == "small"


def test_whatever_taking_a_member_out_raises_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(archive({"a.txt": b"a"}))

    def broken(name: str, limit: int) -> bytes:
        raise RecursionError if name == "deep.txt" else KeyError(f"{name} {limit}")

    monkeypatch.setattr(module, "parse", lambda source, format_: Container(("a.txt", "deep.txt"), broken))
    reply = failed(ask(Reader(), path, "a.txt"), ParserDied)
    assert "KeyError" in reply.error.message
    assert reply.lasting
    assert "nested" in failed(ask(Reader(), path, "deep.txt"), DocumentDamaged).error.message


def test_a_container_is_opened_once_for_all_its_members_and_dropped_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    parse = module.parse

    def counting(source: Source, format_: Format) -> object:
        opened.append(source.name)
        return parse(source, format_)

    monkeypatch.setattr(module, "parse", counting)
    inner: Mapping[str, bytes] = {f"{n}.zip": archive({f"{n}.txt": b"x", "b.txt": b"y"}) for n in range(3)}
    path = tmp_path / "outer.zip"
    path.write_bytes(archive(inner))
    reader = Reader()
    for name in parsed(ask(reader, path)).members:
        for member in parsed(ask(reader, path, name)).members:
            ask(reader, path, name, member)
    assert [name for name in opened if name.endswith(".zip")] == ["outer.zip", "0.zip", "1.zip", "2.zip"]
    state = reader._opened
    assert state is not None and set(state.inner) == {("2.zip",)}


def test_a_mail_alone_is_a_document_and_its_attachment_keeps_no_path(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_text(HEAD + "\nText\n")
    assert parsed(ask(Reader(), path)).members == ()
    path.write_text(parts("mixed", PLAIN, attachment("filename=../../x/t.csv", TABLE)))
    os.utime(path, ns=(1, 1))
    assert parsed(ask(Reader(), path)).members == ("t.csv",)
    assert parsed(ask(Reader(), path, "t.csv")).document is not None
