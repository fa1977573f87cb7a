from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.errors import DocumentEmpty
from edgerag.ingest.parse import json_text
from edgerag.ingest.parse.source import Source
from edgerag.ingest.parse.structured import parse
from edgerag.types import ParsedDocument


def read(text: str, name: str) -> ParsedDocument:
    return parse(Source(text.encode(), name))


def outline(parsed: ParsedDocument) -> list[tuple[int, str]]:
    starts = [heading.start for heading in parsed.headings]
    assert starts == sorted(starts)
    return [(heading.level, heading.title) for heading in parsed.headings]


# ---------------------------------------------------------------- JSON


def test_json_is_the_file_and_its_containers_are_headings() -> None:
    text = '{\n  "name": "pumps",\n  "rates": {\n    "P-30": 5\n  },\n  "note": "x",\n  "parts": [1, 2]\n}\n'
    parsed = read(text, "a.json")
    assert parsed.text == text
    # A plain value at the top stands in its text; behind a container it must not be filed under that.
    assert outline(parsed) == [(1, "rates"), (1, "note"), (1, "parts")]
    assert all(text[heading.start :].startswith(f'"{heading.title}"') for heading in parsed.headings)
    assert (parsed.title, parsed.media_type, parsed.warnings) == ("a.json", "application/json", ())


def test_records_of_an_array_are_known_by_their_names() -> None:
    parsed = read(json.dumps([{"id": 7, "name": "Seal"}, {"title": "Valve"}, {"x": 1}, 5], indent=1), "a.json")
    assert outline(parsed) == [(1, "Seal"), (1, "Valve"), (1, "record 3")]


def test_the_names_in_a_long_part_are_headings_too() -> None:
    pumps = [{"name": f"P-{n}", "text": "The seal must be changed every year."} for n in range(60)]
    parsed = read(json.dumps({"pumps": pumps, "short": {"a": {"b": 1}}}, indent=1), "a.json")
    assert outline(parsed)[:2] == [(1, "pumps"), (2, "P-0")]
    assert outline(parsed)[-2:] == [(2, "P-59"), (1, "short")]


def test_one_endless_line_is_laid_out_again() -> None:
    value = {"pumps": [{"name": f"P-{n}", "curve": [n / 7] * 12, "of": {"a": [[1, 2], {}]}} for n in range(40)]}
    parsed = read(json.dumps(value), "a.json")
    assert json.loads(parsed.text) == value
    assert max(len(line) for line in parsed.text.split("\n")) < 140
    assert any("laid out again" in warning for warning in parsed.warnings)
    assert outline(parsed)[:2] == [(1, "pumps"), (2, "P-0")]


def test_a_long_string_alone_does_not_change_the_lines() -> None:
    text = json.dumps({"a": "A long passage. " * 200, "b": "B"}, indent=2)
    assert read(text, "a.json").text == text


def test_escaped_letters_can_be_read_and_found() -> None:
    text = '{"a": "Gr\\u00fc\\u00dfe \\ud83d\\ude00 \\\\u00e9 \\u0022 \\u202e \\ud800"}\n'
    assert read(text, "a.json").text == '{"a": "Grüße 😀 \\\\u00e9 \\u0022 \\u202e \\ud800"}\n'


@pytest.mark.parametrize("text", ['{"a": {"b": 1', '{"a": [1, 2}', '{"a": 1}}', '{"a": "never closed'])
def test_damaged_json_is_read_as_it_stands(text: str) -> None:
    parsed = read(text, "a.json")
    assert parsed.text == text
    assert any("damaged" in warning for warning in parsed.warnings)


def test_depth_is_no_danger() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}"), ("[{", "")):
        read(opening * 100_000 + closing * 100_000, "a.json")


def test_json_lines_keep_their_lines() -> None:
    text = '{"a": "' + "x" * 3000 + '"}\n{"a": "\\u00e9"}\n'
    parsed = read(text, "a.jsonl")
    assert parsed.text == text.replace("\\u00e9", "é")
    assert (parsed.media_type, parsed.headings, parsed.warnings) == ("application/jsonl", (), ())


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda children: st.lists(children) | st.dictionaries(st.text(max_size=9), children),
    max_leaves=40,
)


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_what_is_laid_out_or_unescaped_means_the_same(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert json.loads(json_text.laid_out(text)) == value
    assert json.loads(json_text.readable(text)) == value
    parts, whole = json_text.named_parts(text)
    assert whole
    assert all(0 <= part.start < part.end <= len(text) for part in parts)


@given(st.text(alphabet='{}[],:"\\a1 \n'))
def test_laying_out_loses_nothing_of_what_is_damaged(text: str) -> None:
    without_blanks = "".join(text.split())
    laid_out = json_text.laid_out(text)
    assert "".join(laid_out.split()) == without_blanks or (laid_out == "" and text.count("[") + text.count("{") > 9)


# ---------------------------------------------------------------- YAML and TOML


def test_keys_of_yaml() -> None:
    text = 'version: 1\n# note:\nservices:\n  web:\n    image: x\n"quoted key":\n  - a\nlast: 2\n'
    parsed = read(text, "a.yaml")
    assert parsed.text == text
    assert outline(parsed) == [(1, "services"), (1, "quoted key"), (1, "last")]
    assert parsed.media_type == "application/yaml"


def test_a_block_of_text_in_yaml_holds_no_keys() -> None:
    assert outline(read("a:\n  b: |\n    Note: this\n    that: too\nscript: >-\n  c: d\n  e:\n    f\n", "a.yml")) == [
        (1, "a"), (1, "script")
    ]  # fmt: skip


def test_documents_in_one_yaml_file_are_known_by_kind_and_name() -> None:
    one = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"
    text = f"---\n{one}---\n{one.replace('Service', 'Deployment')}---\n# nothing\n---\nx:\n  y: 1\n"
    assert outline(read(text, "a.yaml")) == [(1, "Service web"), (1, "Deployment web"), (1, "document 4")]


def test_named_items_of_a_yaml_list_and_keys_of_long_parts() -> None:
    tasks = "".join(f"    - name: Task {n}\n      shell: do the thing number {n}\n" for n in range(50))
    parsed = read(f"- name: Install\n  hosts: all\n  tasks:\n{tasks}- name: Check\n  hosts: web\n", "a.yml")
    assert outline(parsed)[:3] == [(1, "Install"), (2, "tasks"), (3, "Task 0")]
    assert outline(parsed)[-2:] == [(3, "Task 49"), (1, "Check")]


def test_tables_of_toml() -> None:
    text = (
        'a = """\n[not]\n"""\nb = [\n  [1, 2],\n  [3]\n]\n# [no]\n[tool.ruff] # yes\nc = "[no]"\n'
        "[[bin]]\nd = '''\n[no]\n'''\n"
    )
    parsed = read(text, "a.toml")
    assert outline(parsed) == [(1, "tool.ruff"), (1, "bin")]
    assert [text[heading.start] for heading in parsed.headings] == ["[", "["]
    assert parsed.warnings == ()


def test_damaged_toml_is_read_as_it_stands() -> None:
    parsed = read("[a]\nb = \n[c]\n", "a.toml")
    assert parsed.text == "[a]\nb = \n[c]\n"
    assert any("damaged" in warning and "line 2" in warning for warning in parsed.warnings)


# ---------------------------------------------------------------- XML


def test_elements_of_xml_are_known_by_name_or_tag() -> None:
    text = (
        '<?xml version="1.0"?>\n<book>\n <country><name>Peru</name></country>\n <country id="c2"/>\n <country/>\n'
        " <notes><a>ä</a></notes>\n <other>1</other>\n</book>\n"
    )
    parsed = read(text, "a.xml")
    assert parsed.text == text
    assert outline(parsed) == [(1, "country Peru"), (1, "country c2"), (1, "notes"), (1, "other")]
    assert [text[heading.start :][:6] for heading in parsed.headings] == ["<count", "<count", "<notes", "<other"]


def test_one_endless_line_of_xml_is_laid_out_again() -> None:
    pump = "<pump id='p{0}'><name>P-{0}</name><rate unit='l'>{0}</rate><x/><n>so <b>and</b> so</n></pump>"
    parsed = read("<all>" + "".join(pump.format(n) for n in range(60)) + "</all>", "a.xml")
    assert parsed.text.startswith(
        "<all>\n  <pump id='p0'>\n    <name>P-0</name>\n    <rate unit='l'>0</rate>\n    <x/>\n"
        "    <n>so <b>and</b> so</n>\n  </pump>\n  <pump id='p1'>"
    )
    assert any("laid out again" in warning for warning in parsed.warnings)
    assert outline(parsed)[1] == (1, "pump P-1")


DOCBOOK = """<?xml version="1.0"?>
<book xmlns="http://docbook.org/ns/docbook"><info><title>The Manual</title></info>
<chapter><title>Starting the <emphasis>pump</emphasis></title><indexterm><primary>no</primary></indexterm>
<para>Before you start the <literal>P-30</literal>, open the
   inlet valve &amp; check the oil level of the &product; and its seal.</para>
<itemizedlist><listitem><para>Open the valve and wait until the housing is full.</para></listitem>
<listitem><para>Switch it on only after the gauge shows two bar.</para></listitem></itemizedlist>
<section><title>Trouble</title><para>If it does not start, check the fuse and then the switch.</para>
<programlisting>pump --start
    --rate 5</programlisting>
<table><title>Rates</title><row><entry>P-30</entry><entry><para>5 l</para></entry></row>
<row><entry>P-40</entry><entry>7 l</entry></row></table></section></chapter></book>"""


def test_xml_that_holds_prose_is_read_without_its_tags() -> None:
    declared = DOCBOOK.replace("<book", '<!DOCTYPE book [<!ENTITY product "no">]>\n<book', 1)
    parsed = read(declared, "a.xml")
    assert parsed.text == (
        "The Manual\n\nStarting the pump\n\nBefore you start the P-30, open the inlet valve & check the oil level of "
        "the &product; and its seal.\n\n- Open the valve and wait until the housing is full.\n"
        "- Switch it on only after the gauge shows two bar.\n\nTrouble\n\n"
        "If it does not start, check the fuse and then the switch.\n\npump --start\n    --rate 5\n\nRates\n\n"
        "P-30 | 5 l\nP-40 | 7 l"
    )
    assert outline(parsed) == [(1, "The Manual"), (2, "Starting the pump"), (3, "Trouble")]
    assert (parsed.title, parsed.media_type) == ("The Manual", "text/xml")
    assert any("without its tags" in warning for warning in parsed.warnings)


def test_long_passages_alone_are_prose_and_signatures_are_not() -> None:
    prose = "<a><b>" + "All human beings are born free and equal in dignity. " * 9 + "</b></a>"
    assert read(prose, "a.xml").text.startswith("All human")
    assert read(f"<a><b>{'QUJD' * 200}</b></a>", "a.xml").text.startswith("<a>")


def test_no_entity_is_expanded_and_nothing_is_fetched() -> None:
    bombs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "lol"}">' for n in range(12))
    words = "This is a passage of text that is followed by a bomb. " * 5
    parsed = read(f'<!DOCTYPE l [{bombs}<!ENTITY x SYSTEM "file:///etc/passwd">]><l>{words}&a11;&x;</l>', "a.xml")
    assert parsed.text == f"{words}&a11;&x;"


@pytest.mark.parametrize("text", ["<a><b></a>", "<a>", "no xml", "<a>&undefined;</a>", "<a" * 9])
def test_damaged_xml_is_read_as_it_stands(text: str) -> None:
    parsed = read(text, "a.xml")
    assert parsed.text == text
    assert any("damaged" in warning and "line 1" in warning for warning in parsed.warnings)


def test_deep_xml() -> None:
    parsed = read("<a>" * 50_000 + "</a>" * 50_000, "a.xml")
    assert parsed.text.count("<a>") == 50_000


def test_the_declared_encoding_of_xml_counts_where_the_bytes_do_not_tell() -> None:
    text = '<?xml version="1.0" encoding="ISO-8859-2"?>\n<a><b>Łódź</b></a>\n'
    assert parse(Source(text.encode("iso8859-2"), "a.xml")).text == text


# ---------------------------------------------------------------- all


def test_headings_are_bounded() -> None:
    assert len(read(json.dumps({f"k{n}": [n] for n in range(9000)}, indent=1), "a.json").headings) == 0


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.yaml", "a.toml", "a.xml"])
def test_nothing_is_a_finding(name: str) -> None:
    with pytest.raises(DocumentEmpty):
        parse(Source(b" \n", name))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.json", lambda text: text),
        ("a.yaml", lambda text: text.replace(",", ":\n  ")),
        ("a.toml", lambda text: text.replace(",", "\n[a]\n")),
        ("a.xml", lambda text: text.replace("[", "<a>").replace("]", "</a>")),
    ],
)
@given(text=st.text(alphabet="[]{}\"':,.-#|&<>=/\\ \nabé\x00", max_size=300))
def test_any_text_is_read(name: str, make: Callable[[str], str], text: str) -> None:
    source = Source(("x" + make(text)).encode(), name)
    parsed = parse(source)
    assert all(0 <= heading.start < len(parsed.text) and heading.title for heading in parsed.headings)


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", "[" * 50_000 + "]" * 50_000), ("a.xml", "<a>" * 9000 + "</a>" * 9000)]
)
def test_a_file_that_is_nothing_but_nesting_does_not_grow(name: str, text: str) -> None:
    assert len(parse(Source(text.encode(), name)).text) <= 5 * len(text)
