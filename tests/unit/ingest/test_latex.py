from __future__ import annotations

import pytest

from edgerag.ingest.parse.latex import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument


def latex(text: str) -> ParsedDocument:
    return parse(Source(text.encode(), "paper.tex"))


def headings(text: str) -> list[tuple[int, str]]:
    parsed = latex(text)
    assert all(parsed.text[heading.start] == "\\" for heading in parsed.headings), "where the command stands"
    return [(heading.level, heading.title) for heading in parsed.headings]


def test_levels_count_from_the_highest_in_use() -> None:
    assert headings("\\section{A}\n\\subsection*{B}\n\\paragraph{C} text\n\\section[short]{D}") == [
        (1, "A"), (2, "B"), (4, "C"), (1, "D")
    ]  # fmt: skip
    assert headings("\\part{P}\\chapter{C}\n\\section{S}") == [(1, "P"), (2, "C"), (3, "S")]


@pytest.mark.parametrize(
    "text",
    [
        "% \\section{commented}\n",
        "text % and \\section{commented}\n",
        "\\begin{verbatim}\n\\section{no}\n\\end{verbatim}\n",
        "\\begin{lstlisting}[language=TeX]\n\\section{no}\n\\end{lstlisting}\n",
        "\\begin{comment}\n\\section{no}\n\\end{comment}\n",
        "\\verb|\\section{no}|\n",
        "\\newcommand{\\mysection}[1]{\\section{#1}}\n",
        "\\renewcommand{\\thesection}{\\arabic{section}}\n\\titleformat{\\section}{x}{y}\n",
        "\\section{never closed\n",
        "\\section\n",
    ],
)
def test_no_heading_where_there_is_none(text: str) -> None:
    assert headings(text) == []


def test_an_escaped_percent_sign_begins_no_comment() -> None:
    assert headings("50\\% of \\section{A}\n\\\\% \\section{no}\n") == [(1, "A")]


def test_after_verbatim_the_search_goes_on_at_the_right_place() -> None:
    text = "\\begin{minted}{python}\n# 100% é\n\\end{minted}\n\n\\section{Real}\n"
    (heading,) = latex(text).headings
    assert text[heading.start :].startswith("\\section{Real}")


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("The \\emph{fast} \\texttt{pump\\_start}", "The fast pump_start"),
        ('Caf\\\'e, \\"Uber \\c{c}a, na\\"{\\i}ve \\ss{}', "Café, Über ça, naïve ß"),
        ("A~B \\& C -- D --- ``quoted''", "A B & C – D — “quoted”"),
        ("The order $O(n^2)$", "The order O(n^2)"),
        ("Long\\footnote{note} title\\label{sec:x} \\\\ of two lines", "Long title of two lines"),
        ("\\texorpdfstring{$\\alpha$}{alpha} rays", "alpha rays"),
        ("Nested {\\bf bold {very}}", "Nested bold very"),
        ("Over\ntwo lines", "Over two lines"),
    ],
)
def test_titles_are_shown_as_they_are_printed(written: str, printed: str) -> None:
    assert headings(f"\\section{{{written}}}\n") == [(1, printed)]


def test_commands_that_a_class_makes_of_the_standard_ones() -> None:
    assert headings("\\addsec{A}\n\\olsection{B}\n\\frametitle{C}") == [(1, "A"), (1, "B"), (4, "C")]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("\\title[Short]{The \\emph{Pump}\\thanks{us}}\n\\section{A}", "The Pump"),
        ("% \\title{no}\n\\section{A}", "A"),
        ("\\section{A}\\section{B}", "paper.tex"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert latex(text).title == title
