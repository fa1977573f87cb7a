from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentError
from edgerag.ingest.parse.rtf import parse
from edgerag.ingest.parse.source import Source
from edgerag.types import ParsedDocument

FONTS = (
    r"{\fonttbl{\f0\froman\fcharset0 Times New Roman;}{\f1\fnil\fcharset204 Times New Roman CYR;}"
    r"{\f2\fnil\fcharset128 MS Mincho;}{\f3\ftech\fcharset2 Symbol;}{\f4\fnil\fcharset2 Wingdings;}"
    r"{\f5\fswiss\fcharset238{\*\panose 020b}Arial CE;}}"
)
STYLES = (
    r"{\stylesheet{\s0 Normal;}{\s1\sbasedon0 heading 1;}{\s2\sbasedon0 heading 2;}{\s3\sbasedon2 My own;}"
    r"{\s15 Title;}{\*\cs10 Default Paragraph Font;}}"
)


def read(body: str | bytes, *, header: str = r"{\rtf1\ansi\ansicpg1252\deff0" + FONTS + STYLES) -> ParsedDocument:
    data = body if isinstance(body, bytes) else body.encode("latin-1")
    return parse(Source(header.encode("ascii") + data + b"}", "letter.rtf"))


def test_paragraphs_headings_and_tables_in_document_order() -> None:
    parsed = read(
        r"\pard\s15 The report\par\pard\s1 First part\par\pard Text & more.\par"
        r"\trowd\cellx100\cellx200\pard\intbl Item\cell Price\cell\row"
        r"\trowd\cellx100\cellx200\pard\intbl Bolt\cell 12\cell\row"
        r"\pard\s3 Deeper\par\pard The end.\par"
    )
    assert parsed.text == "The report\n\nFirst part\n\nText & more.\n\nItem | Price\nBolt | 12\n\nDeeper\n\nThe end."
    assert parsed.title == "The report"
    assert [(h.level, h.title) for h in parsed.headings] == [(1, "The report"), (1, "First part"), (2, "Deeper")]
    assert all(parsed.text[h.start :].startswith(h.title) for h in parsed.headings)


def test_bytes_are_read_in_the_code_page_of_their_font() -> None:
    assert read(r"caf\'e9 \'93x\'94").text == "café “x”"
    assert read(r"\f1 \'cf\'f0\'e8\'e2\'e5\'f2").text == "Привет"
    assert read(r"{\f5 \'b9\'ea}\'b9").text == "ąę¹"
    assert read(r"{\f2 \'93\'fa\'96\'7b}.").text == "日本."


def test_a_character_of_two_bytes_may_end_in_an_ascii_letter() -> None:
    assert read(r"\f2 \'83A\'83C").text == "アイ"  # 0x83 0x41, 0x83 0x43
    assert read(rb"\f2 \'83\'5c").text == "ソ"


def test_the_code_page_of_the_document_rules_where_no_font_names_one() -> None:
    assert read(r"\'cf\'f0", header=r"{\rtf1\ansi\ansicpg1251").text == "Пр"
    plain = r"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0\fcharset0 Arial;}}\f0"
    assert read(r"\'cf\'f0", header=plain).text == "Пр"  # a program that knows no character sets
    word = r"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial CYR;}}\f0"
    assert read(r"\'e9", header=word).text == "é"
    assert read(r"\'82\'a0", header=r"{\rtf1\ansi\ansicpg932").text == "あ"
    assert read(r"\'8e", header=r"{\rtf1\mac").text == "é"


def test_unicode_characters_and_the_fallbacks_that_follow_them() -> None:
    assert read(r"na\u239?ve").text == "naïve"
    assert read(r"\uc0\u8364 5").text == "€5"
    assert read(r"{\uc2\u26085\'93\'fa}\u8211-x").text == "日–x"
    assert read(r"\u-10179?\u-8704?!").text == "😀!"
    assert read(r"{\uc3 \u8482 (T)}M").text == "™M"
    assert read(r"{\u8217}s").text == "’s"  # the group ends before a fallback
    assert read(r"a\u8217\par b").text == "a’\n\nb"  # no fallback was written
    assert read(r"\u8217\'92\emdash\~\_x").text == "’—\u00a0-x"
    assert read(r"\u55357?x").text == "\ufffdx"  # half a character


def test_signs_of_symbol_fonts_are_what_they_look_like() -> None:
    assert read(r"{\f3 a \'a3 b}").text == "α ≤ β"
    assert read(r"{\f3\u-3999?}").text == "α"  # F061, in the private area
    assert read(r"{\f4 l}x").text == "•x"


def test_what_is_no_text_is_left_out() -> None:
    parsed = read(
        r"shown{\deleted deleted}{\*\unknown secret}{\pict\wmetafile8 0102ABCD}"
        r"{\field{\*\fldinst HYPERLINK http://x}{\fldrslt  link}}{\xe index}{\object{\*\objdata 00}{\result  result}}"
        r"{\*\annotation a comment}{\nonshppict{\pict 00}}"
    )
    assert parsed.text == "shown link result"
    assert parsed.warnings == ("Comments were left out.",)


def test_binary_data_is_skipped_by_its_length() -> None:
    assert read(b"a{\\pict\\bin7 }}}{{\\\\}b\\bin2 {{c").text == "abc"


def test_unicode_alternative_of_a_destination_is_read_once() -> None:
    assert read(r"a {\upr{b?}{\*\ud{b\u233?}}} c").text == "a bé c"


def test_headers_are_not_repeated_and_notes_follow() -> None:
    parsed = read(
        r"{\header ACME, page \chpgn 1\par}{\headerf ACME, page 2\par}{\footer Secret\par}"
        r"Body{\super\chftn}{\footnote\pard The note.\par} text.\par"
    )
    assert parsed.text == "ACME, page 1\n\nSecret\n\nBody text.\n\nThe note."


def test_a_text_box_is_read_once_after_its_paragraph() -> None:
    box = (
        r"{\shp{\*\shpinst\shpleft1{\sp{\sn shapeType}{\sv 202}}{\shptxt\pard In the box\par}}"
        r"{\shprslt{\*\do{\dptxbxtext In the box\par}}}}"
    )
    assert read(rf"Around{box} it.\par After.").text == "Around it.\n\nIn the box\n\nAfter."


def test_lists_keep_their_numbers_and_depth() -> None:
    parsed = read(
        r"\pard{\listtext\f3\'b7\tab}\ls1 one\par{\pntext 2)\tab}\ls1\ilvl1 two\par"
        r"\pard\bullet\tab typed\par\pard\s1{\listtext 1.2\tab}Heading\par"
    )
    assert parsed.text == "- one\n  2) two\n- typed\n\n1.2 Heading"
    assert parsed.headings[0].title == "1.2 Heading"


def test_nested_tables_are_not_lost() -> None:
    inner = r"\pard\intbl\itap2 deep\nestcell er\nestcell{\*\nesttableprops\trowd\nestrow}{\nonesttables\par}"
    text = read(
        rf"\trowd\cellx1\cellx2\pard\intbl before\par {inner}\pard\intbl\itap1 after\cell x\cell\row\pard End"
    ).text
    assert text == "before\n\ndeep | er\n\nafter\n\nx\n\nEnd"


def test_tables_that_are_parted_by_text_are_two() -> None:
    row = r"\trowd\pard\intbl a\cell b\cell\row\pard "
    assert read(rf"{row}between\par {row}").text == "a | b\n\nbetween\n\na | b"
    assert read(rf"{row}{row}").text == "a | b\na | b"


def test_the_title_of_the_file_comes_first() -> None:
    assert read(r"{\info{\title My r\'e9sum\u233?}{\author Me}}\pard\s1 H\par x").title == "My résumé"
    assert read("x").title == "letter.rtf"


def test_outline_levels_make_headings_without_a_style_sheet() -> None:
    parsed = read(r"{\pard\outlinelevel0 One\par}{\pard\outlinelevel1 Two\par}{\pard text\par}", header=r"{\rtf1\ansi")
    assert [(h.level, h.title) for h in parsed.headings] == [(1, "One"), (2, "Two")]


def test_a_file_that_is_cut_short_is_read_as_far_as_it_goes() -> None:
    parsed = parse(Source(rb"{\rtf1\ansi First.\par {\b Second", "x.rtf"))
    assert parsed.text == "First.\n\nSecond"
    assert "too early" in parsed.warnings[0]
    assert parse(Source(b"{\\rtf1 whole}\x00\x00 \r\n", "x.rtf")).warnings == ()


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (b"{\\rtf1\\ansi{\\pict 0102}}", DocumentEmpty, "no text"),
        (b"{\\rtf1\\ansi{\\fonttbl{\\f0 Ari", DocumentDamaged, "cut short"),
        (b"plain text", DocumentDamaged, "does not begin"),
        (b"{\\rtf1" + b"{" * 20_000, DocumentDamaged, "nested"),
    ],
)
def test_damage_is_named(data: bytes, error: type[DocumentError], words: str) -> None:
    with pytest.raises(error, match=words):
        parse(Source(data, "x.rtf"))


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co"]), min_size=1).filter(str.strip))
def test_any_text_comes_back_as_it_was_written(text: str) -> None:
    encoded = text.encode("utf-16-le")
    units = [int.from_bytes(encoded[at : at + 2], "little", signed=True) for at in range(0, len(encoded), 2)]
    parsed = read("x" + "".join(rf"\u{unit}?" for unit in units) + "x")
    assert parsed.text == f"x{text}x"


@given(
    st.lists(
        st.sampled_from(
            [
                r"\par ",
                r"\cell ",
                r"\row ",
                r"\trowd\intbl ",
                r"\itap3 ",
                "{",
                "}",
                r"\u9731 ",
                r"\nestcell ",
                r"\nestrow ",
                r"\'82",
                r"\*",
                "\\",
                r"\bin3 ",
                r"\footnote ",
                r"\f2 ",
                "word ",
                r"\pard ",
                r"\v ",
            ]
        )
    )
)
def test_any_mixture_of_tokens_is_read_or_named(tokens: list[str]) -> None:
    try:
        parsed = read("start " + "".join(tokens))
    except DocumentError:
        return
    assert "start" in parsed.text
