"""Files with scans, from the path to the document."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.ingest.fake_tesseract import Install, install
from unit.ingest.pdf_craft import build, picture, text

from edgerag.errors import DocumentScanned, DocumentUnsupported
from edgerag.ingest.parse.ocr import Recogniser, find_recogniser
from edgerag.ingest.parse.process import ParserProcess
from edgerag.ingest.parse.wire import Failed, Parsed, Reply
from edgerag.types import OcrMode, ParsedDocument

__all__ = ["install"]
SCAN = picture(595, 842)


def found(mode: OcrMode = "auto", languages: str = "", deadline_s: float = 30) -> Recogniser | None:
    return find_recogniser(mode, languages, deadline_s=deadline_s, memory_bytes=2_000_000_000)


def read(path: Path, recogniser: Recogniser | None, **options: object) -> Reply:
    parser = ParserProcess(memory_bytes=2_000_000_000, max_file_bytes=50_000_000, deadline_s=30, recogniser=recogniser)
    try:
        reply = parser.read(str(path), **options)  # type: ignore[arg-type]
    finally:
        parser.close()
    assert reply is not None
    return reply


def document(reply: Reply) -> ParsedDocument:
    assert isinstance(reply, Parsed) and reply.document is not None, reply
    return reply.document


@pytest.fixture
def partly(tmp_path: Path) -> Path:
    path = tmp_path / "partly.pdf"
    path.write_bytes(build([text(72, 700, "A page of text."), SCAN, SCAN, text(72, 700, "The end.")]))
    return path


def test_scanned_pages_are_read_and_marked(install: Install, partly: Path) -> None:
    install()
    parsed = document(read(partly, found()))
    assert parsed.warnings == ("Pages 2-3 were read by OCR (confidence 88 %).",)
    pages = [parsed.text[page.start : page.end] for page in parsed.pages]
    assert pages[0] == "A page of text." and pages[3] == "The end."
    for page in pages[1:3]:
        first, call, blank, second = page.split("\n")
        assert first == "Read by OCR: b'P5' b'2480' b'3509'", "drawn at 300 dpi"
        assert call == "stdin stdout -l eng --psm 1 --dpi 300 -c tessedit_create_tsv=1"
        assert (blank, second) == ("", "A second paragraph.")


def test_force_reads_every_page(install: Install, partly: Path) -> None:
    install()
    parsed = document(read(partly, found("force")))
    assert parsed.text.count("Read by OCR") == 4 and "A page of text" not in parsed.text


def test_without_tesseract_a_scan_is_a_failure_and_a_partial_one_has_a_warning(
    install: Install, partly: Path, tmp_path: Path
) -> None:
    assert install and found() is None
    assert document(read(partly, None)).warnings == (
        "2 pages without text, scanned and not read: pages 2-3. See --ocr.",
    )
    (tmp_path / "scan.pdf").write_bytes(build([SCAN]))
    reply = read(tmp_path / "scan.pdf", None)
    assert isinstance(reply, Failed) and isinstance(reply.error, DocumentScanned)
    assert not reply.skipped and not reply.lasting, "once Tesseract is there it is tried again"
    assert "a scan" in str(reply.error) and "Tesseract" in str(reply.error)


def test_pictures_are_read_and_skipped_without_ocr(install: Install, tmp_path: Path) -> None:
    path = tmp_path / "letter.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    reply = read(path, None)
    assert isinstance(reply, Failed) and isinstance(reply.error, DocumentUnsupported) and reply.skipped
    install()
    parsed = document(read(path, found()))
    assert parsed.text.startswith("Read by OCR: a picture")
    assert parsed.warnings == ("It was read by OCR (confidence 88 %).",)
    install(confidence=12)
    reply = read(path, found())
    assert isinstance(reply, Failed) and reply.skipped and "no text" in reply.error.message


def test_what_it_is_not_sure_of_is_no_text(install: Install, partly: Path) -> None:
    install(confidence=20)
    parsed = document(read(partly, found()))
    assert parsed.text.split() == ["A", "page", "of", "text.", "The", "end."]
    assert parsed.warnings == ("OCR found no text on pages 2-3.",)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.stderr.write('Error opening data file\\n'); sys.exit(1)", "gave up: Error opening data file"),
        ("import signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed"),
        ("import time; time.sleep(600)", "stopped after 1 seconds"),
        ("x = bytearray(3_000_000_000); line(1, 1, 'too', 'much')", "gave up: MemoryError"),
    ],
)
def test_a_failing_tesseract_fails_its_page_only(install: Install, partly: Path, body: str, said: str) -> None:
    install(body)
    parsed = document(read(partly, found(deadline_s=1)))
    assert "A page of text." in parsed.text
    assert len(parsed.warnings) == 1 and said in parsed.warnings[0] and "pages 2-3" in parsed.warnings[0]


def test_it_may_not_write_and_gets_little_of_the_environment(
    install: Install, tmp_path: Path, partly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGERAG_PASSWORD", "secret")
    target = tmp_path / "written"
    install(
        f"""
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with open({str(target)!r}, "w") as file:
        file.write("x" * 100)
except OSError:
    line(1, 1, "refused")
line(1, 2, *sorted(os.environ))
"""
    )
    parsed = document(read(partly, found()))
    assert "refused" in parsed.text and target.stat().st_size == 0
    assert "EDGERAG_PASSWORD" not in parsed.text and "OMP_THREAD_LIMIT" in parsed.text


def test_scans_in_a_pdf_with_attachments_and_in_a_protected_one(install: Install, tmp_path: Path) -> None:
    install()
    path = tmp_path / "letter.pdf"
    scan = build([SCAN])
    path.write_bytes(build([SCAN], attached=[("inner.pdf", scan), ("a.txt", b"words")], user_password="foo"))
    parser = ParserProcess(
        memory_bytes=2_000_000_000, max_file_bytes=50_000_000, deadline_s=30, passwords=("foo",), recogniser=found()
    )
    try:
        outer = parser.read(str(path))
        assert isinstance(outer, Parsed) and outer.document is not None and len(outer.members) == 2
        assert "Read by OCR" in outer.document.text
        inner = parser.read(str(path), member=(outer.members[0],))
        assert "Read by OCR" in document(inner).text if inner is not None else False
        parser.close()  # as after a crash: the outer file is opened anew for its member
        last = parser.read(str(path), member=(outer.members[1],))
        assert last is not None and document(last).text == "words"
    finally:
        parser.close()
