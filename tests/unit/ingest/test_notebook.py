from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.config import ChunkSettings
from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentError
from edgerag.ingest.chunk import chunk
from edgerag.ingest.parse.notebook import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument


def notebook(*cells: dict[str, object], **more: object) -> ParsedDocument:
    whole = {"nbformat": 4, "metadata": {"language_info": {"name": "python"}}, "cells": cells, **more}
    return parse(Source(json.dumps(whole).encode(), "study.ipynb"))


def markdown(*lines: str) -> dict[str, object]:
    return {"cell_type": "markdown", "source": list(lines)}


def code(source: str, *outputs: dict[str, object]) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def test_cells_come_in_order_as_markdown_with_exact_headings() -> None:
    parsed = notebook(markdown("# Pumps\n", "\n", "Text."), code("a = 1\n\nb = 2"), markdown("## Rates\n"))
    assert parsed.text == "# Pumps\n\nText.\n\n```python\na = 1\n\nb = 2\n```\n\n## Rates"
    assert [(h.level, h.title, parsed.text[h.start :][:5]) for h in parsed.headings] == [
        (1, "Pumps", "# Pum"), (2, "Rates", "## Ra")
    ]  # fmt: skip
    assert (parsed.title, parsed.media_type, parsed.warnings) == ("Pumps", "application/x-ipynb+json", ())


def test_outputs_are_text_and_images_are_left_out() -> None:
    parsed = notebook(
        code(
            "run()",
            {"output_type": "stream", "name": "stdout", "text": ["one\n"]},
            {"output_type": "stream", "name": "stderr", "text": "\x1b[31mtwo\x1b[0m\n"},
            {"output_type": "display_data", "data": {"image/png": "iVBOR" * 100}},
            {"output_type": "execute_result", "data": {"text/html": "<b>3</b>", "text/plain": ["3"]}},
            {"output_type": "error", "ename": "ValueError", "evalue": "too fast", "traceback": ["\x1b[0m..."]},
        ),
        markdown("![p](data:image/png;base64," + "iVBOR" * 100 + ")"),
    )
    assert parsed.text == (
        "```python\nrun()\n```\n\n```output\none\ntwo\n```\n\n```output\n3\n```\n\n"
        "```output\nValueError: too fast\n```\n\n![p]()"
    )


def test_a_long_output_is_shortened_and_that_is_said() -> None:
    parsed = notebook(code("x", {"output_type": "stream", "text": "".join(f"line {n}\n" for n in range(5000))}))
    assert len(parsed.text) < 2_100
    assert parsed.text.endswith("\n…\n```")
    assert parsed.warnings == ("1 outputs were shortened to 2000 characters.",)


def test_a_fence_in_the_code_does_not_end_it() -> None:
    parsed = notebook(code('"""\n```\n# no heading\n```\n"""'), markdown("# Real"))
    assert [heading.title for heading in parsed.headings] == ["Real"]
    assert parsed.text.startswith("````python\n")


def test_nbformat_3() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old ", "style"]},
        {
            "cell_type": "code",
            "language": "julia",
            "input": ["print(1)"],
            "outputs": [{"output_type": "pyout", "text": ["1"]}],
        },
    ]
    whole = {"nbformat": 3, "worksheets": [{"cells": cells}]}
    parsed = parse(Source(json.dumps(whole).encode(), "old.ipynb"))
    assert parsed.text == "## Old style\n\n```julia\nprint(1)\n```\n\n```output\n1\n```"
    assert [(heading.level, heading.title) for heading in parsed.headings] == [(2, "Old style")]


def test_code_of_a_cell_stays_in_one_chunk() -> None:
    body = "first = 1\n\n\nsecond = 2"
    parsed = notebook(markdown("# A\n\n" + "Words come first. " * 9), code(body), markdown("Words come last. " * 9))
    found = chunk(
        parsed,
        count_tokens=lambda t: len(t.split()),
        settings=ChunkSettings(target_tokens=32, heading_tokens=4),
        max_tokens=48,
    )
    assert any(body in piece.text for piece in found)


@pytest.mark.parametrize(
    "data", ['{"cells": [', "[]", '{"cells": {}}', "{}", '{"worksheets": 3}', "no json", "[" * 100_000]
)
def test_damage_is_named(data: str) -> None:
    with pytest.raises(DocumentDamaged):
        parse(Source(data.encode(), "x.ipynb"))


def test_a_notebook_of_empty_cells_is_empty() -> None:
    with pytest.raises(DocumentEmpty):
        notebook(code(""), markdown(" \n"))


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), lambda c: st.lists(c, max_size=4))
CELL = st.dictionaries(
    st.sampled_from(["cell_type", "source", "input", "level", "language", "outputs"]),
    st.one_of(
        JSON,
        st.sampled_from(["code", "markdown", "heading"]),
        st.lists(
            st.dictionaries(st.sampled_from(["output_type", "text", "data", "ename"]), JSON, max_size=3), max_size=3
        ),
    ),
)


@given(st.lists(CELL | JSON, max_size=5), JSON)
def test_any_cells_are_read_or_refused(cells: list[object], metadata: object) -> None:
    try:
        parsed = parse(Source(json.dumps({"cells": cells, "metadata": metadata}).encode(), "x.ipynb"))
    except DocumentError:
        return
    assert all(parsed.text[heading.start] == "#" or heading.level <= 2 for heading in parsed.headings)
