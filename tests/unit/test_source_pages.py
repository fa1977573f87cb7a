"""From a source to the pages of its file, through a session."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import HashingEmbedder, ScriptedGenerator
from unit.ingest import craft

from edgerag.config import Settings
from edgerag.errors import DocumentChanged, DocumentGone, DocumentUnsupported
from edgerag.locations import Locations
from edgerag.session import Session
from edgerag.types import AnswerDone, PageWanted, Source

QUESTION = "When does the badger sleep?"
SENTENCE = "The badger sleeps by day in its sett."


def session_over(folder: Path) -> Session:
    return Session(
        Settings(), Locations(folder), embedder=HashingEmbedder, generator=lambda: ScriptedGenerator("By day [1].")
    )


def first_source(session: Session) -> Source:
    *_, done = session.ask(QUESTION)
    assert isinstance(done, AnswerDone)
    return done.answer.sources[0]


def test_the_page_of_a_source_is_drawn_as_long_as_the_file_is_the_one_that_was_read(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    file = docs / "badger.pdf"
    file.write_bytes(craft.text_pdf("Of herons nothing is told here.", SENTENCE))
    with session_over(tmp_path) as session:
        list(session.ingest([docs]))
        source = first_source(session)
        wanted = PageWanted(2, 200, SENTENCE, SENTENCE)
        pages = session.source_pages(source)
        try:
            drawn = pages.draw(wanted)
            assert drawn is not None and drawn.page_count == 2 and drawn.quote
            file.write_bytes(craft.text_pdf("Another edition.", SENTENCE))
            with pytest.raises(DocumentChanged, match="has changed"):
                pages.draw(wanted)
            moved = file.rename(docs / "elsewhere.pdf")
            with pytest.raises(DocumentGone, match="no longer where it was read"):
                pages.draw(wanted)
        finally:
            pages.close()
        session.remove([str(file)])
        assert moved.exists()
        with pytest.raises(DocumentGone, match="no longer in the library"):
            session.source_pages(source)


def test_what_is_no_pdf_has_no_pictures(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "badger.md").write_text(f"# Badgers\n\n{SENTENCE}\n")
    with session_over(tmp_path) as session:
        list(session.ingest([docs]))
        with pytest.raises(DocumentUnsupported, match="Only pages of a PDF"):
            session.source_pages(first_source(session))
