"""Threads as files: everything in them is there, and nothing in them acts."""

from __future__ import annotations

import json
import re
import resource
import signal
import stat
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

sys.path.insert(0, str(Path(__file__).parents[1] / "threads"))

from conversations import answer, source

from edgerag.errors import OutputRefused, UsageError
from edgerag.types import Exchange, FilterText, FoundSource, Thread, ThreadHead
from edgerag.ui.export import FORMATS, ExportFormat, export, file_name, format_of, write_new
from edgerag.ui.export.markdown import escaped, rewritten

MARKUP = (
    "<script>alert(1)</script> [x](http://evil.example) ![p](http://evil.example/p) <http://evil.example> &lt;b&gt;"
)
HOSTILE = f"{MARKUP} http://evil.example www.evil.example a@evil.example \x1b[31m \u202egnp \x00"
DANGEROUS = {"\x1b", "\u202e", "\x00", "\x9b"}


def thread_of(text: str, *, title: str = "Which torque?", question: str = "Which torque?") -> Thread:
    head = ThreadHead(5, "default", title, 0, 0, 1)
    made = replace(answer(question, text), sources=(source(),))
    return Thread(head, (Exchange(8, 5, None, 0, "done", question, text, where=FilterText(types="pdf"), answer=made),))


def found_in(thread: Thread) -> dict[int, list[FoundSource]]:
    return {e.id: [FoundSource(s, "changed") for s in e.answer.sources] for e in thread.exchanges if e.answer}


def exported(thread: Thread, form: ExportFormat) -> str:
    return export(thread, found_in(thread), form=form)


@pytest.mark.parametrize("form", FORMATS)
def test_question_answer_and_sources_are_in_every_form(form: ExportFormat) -> None:
    text = exported(thread_of("They need **12** newton metres [1]. They are blue."), form).replace("\\", "")
    for words in (
        "Which torque?",
        "They need",
        "/docs/pump.md",
        "The pump",
        "The lid screws need 12",
        "They are blue.",
    ):
        assert words in text, words
    assert ("changed" in text) and ("No source has it." in text or form == "json")
    assert "pdf" in text


class Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(html: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Elements()
    parser.feed(html)
    return parser.found


def assert_inert(html: str) -> None:
    for tag, attributes in elements(html):
        assert tag not in ("script", "img", "iframe", "object", "embed", "link", "form", "base", "svg"), tag
        assert not any(name.startswith("on") for name in attributes)
        if "href" in attributes:
            assert re.fullmatch(r"#s\d+-\d+", attributes["href"] or ""), attributes
        assert "src" not in attributes and "style" not in attributes


def test_a_page_loads_and_runs_nothing_and_marks_lead_to_sources() -> None:
    answer_text = f"{HOSTILE}\n\n```js' onload='x\n{HOSTILE}\n```\n\n| {MARKUP} |\n|---|\n| [1] |\n\n`[1]` [1] [9]"
    html = exported(thread_of(answer_text, title=HOSTILE, question=HOSTILE), "html")
    assert_inert(html)
    assert not DANGEROUS & set(html)
    assert "default-src 'none'" in html
    assert html.count('href="#s8-1"') == 2, "in the table and in the text, not in the code"
    assert 'id="s8-1"' in html and "s8-9" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def all_html(markdown: str) -> str:
    """As the most permissive reader of Markdown shows it."""
    return MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markdown)


def test_no_reader_of_markdown_finds_anything_to_act_on() -> None:
    markdown = exported(
        thread_of(f"{HOSTILE} [1]\n\n- {MARKUP}\n\n# {MARKUP}", title=HOSTILE, question=HOSTILE), "markdown"
    )
    html = all_html(markdown)
    assert not [tag for tag, _ in elements(html) if tag in ("img", "script")]
    links = [attributes for tag, attributes in elements(html) if tag == "a"]
    assert links == [{"href": "#sources:1"}, {"id": "sources:1"}], "its mark, and the place that it leads to"
    assert not DANGEROUS & set(markdown)
    assert "http://" not in markdown and "www.evil" not in markdown, "readers make links of bare addresses"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html, "and it is there to read"


PIECES = ["# ", "- ", "> ", "```", "|", "[1]", "*", "_", "~~", "\n", "\n\n", "a b", "1. ", "---", "[x](y)", "<b>", "`"]
PIECES += [
    "&#27;",
    "备用",
    "  ",
    "\t",
    "$x$",
    "\\",
    "!",
    "\\(a_b\\)",
    "http://e.example",
    "| a |\n|---|\n| b |\n",
    "    ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_answer_is_rewritten_and_rendered_without_anything_that_acts(text: str) -> None:
    html = all_html(rewritten(text))
    assert not [tag for tag, _ in elements(html) if tag in ("a", "img", "b", "script")], html
    assert_inert(exported(thread_of(text), "html"))


def shown_letters(html: str) -> str:
    text = re.sub(r"<[^>]+>", "", html)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(entity, character)
    return "".join(character for character in text if character.isalnum())


@given(st.text(alphabet=st.sampled_from("ab1 .)(*_#>[]|`~<&;:/@-=+$\\!\n"), max_size=60))
def test_escaped_text_reads_as_it_is(text: str) -> None:
    line = " ".join(text.split())
    html = all_html(f"x {escaped(line)} x")
    assert elements(html) == [("p", {})]
    assert shown_letters(html) == "".join(c for c in f"x{line}x" if c.isalnum())


def test_structure_is_kept() -> None:
    markdown = (
        "## Head\n\n- one\n  - two\n\n3. three\n4. four\n\n| a | b |\n|---|---|\n| `c` | **d** |\n\n```py\nx = 1\n```"
    )
    inner = all_html(rewritten(markdown))
    for tag in ("<h2>", "<ul>", '<ol start="3">', "<table>", "<code>c</code>", "<strong>d</strong>", "<pre>"):
        assert tag in inner


def test_json_can_be_read_and_shown() -> None:
    text = exported(thread_of(HOSTILE, title=HOSTILE), "json")
    assert not DANGEROUS & set(text)
    record = json.loads(text)
    assert record["exchanges"][0]["answer"] == HOSTILE
    assert record["exchanges"][0]["sources"][0]["state"] == "changed"
    assert record["exchanges"][0]["filter"] == {"types": "pdf"}


def test_a_file_is_named_by_its_title_and_never_replaced(tmp_path: Path) -> None:
    thread = thread_of("x", title="../../Où est le chat? 猫")
    name = file_name(thread, "html")
    assert name == "où-est-le-chat-猫.html"
    assert file_name(thread_of("x", title="..."), "markdown") == "thread-5.md"
    target = tmp_path / name
    write_new(target, "one")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="exists already"):
        write_new(target, "two")
    assert target.read_text() == "one"
    assert format_of(target) == "html"
    with pytest.raises(UsageError, match="which format"):
        format_of(tmp_path / "x.pdf")


def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    target = tmp_path / "half.md"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(OutputRefused, match="cannot be written"):
            write_new(target, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    assert not target.exists()
