from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentUnsupported
from edgerag.ingest.parse.mailbox import looks_like_mailbox, parse
from edgerag.ingest.parse.source import Container, Source

FIRST = b"""From ann@example.org Mon Jan  1 10:00:00 2024
From: Ann <ann@example.org>
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= / more

Hello

From now on: every text may begin so.
>From here, quoted.
>>From there, quoted twice.

"""
SECOND = b"""From nobody
Return-Path: <x@example.org>
Subject: two
 lines

From 12:00 to 13:00 in 2020 we met.
No header follows.

"""
THIRD = b"""From - Tue Jan  2 00:00:00 2024
X-Mozilla-Status: 0001
From: Bob <bob@example.org>

no subject
"""


def opened(data: bytes) -> Container:
    return parse(Source(data, "mail.mbox"))


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_each_message_is_a_member_under_its_number_and_subject(line_end: bytes) -> None:
    container = opened((FIRST + SECOND + THIRD).replace(b"\n", line_end))
    assert container.members == ("0001 Grüße - more.eml", "0002 two lines.eml", "0003.eml")
    read = [container.read(name, 10_000).replace(line_end, b"\n") for name in container.members]
    assert b"\nFrom now on: every" in read[0]
    assert b"\nFrom here, quoted.\n>From there, quoted twice." in read[0]
    assert read[1:] == [SECOND, THIRD]
    assert container.document is None


def test_names_are_clean_each_once_and_stay_when_the_mailbox_grows() -> None:
    message = b"From a Mon Jan  1 10:00:00 2024\nSubject: %s\n\nx\n\n"
    subjects = [b"../../etc/passwd", b"x" * 500, b"a\x1b[0mb", b"", b"same", b"same"]
    container = opened(b"".join(message % subject for subject in subjects))
    assert container.members == (
        "0001 ..-..-etc-passwd.eml",
        "0002 " + "x" * 80 + ".eml",
        "0003 a [0mb.eml",
        "0004.eml",
        "0005 same.eml",
        "0006 same.eml",
    )
    grown = opened(b"".join(message % subject for subject in [*subjects, *[b"new"] * 10_000]))
    assert grown.members[:6] == container.members
    assert grown.members[-1] == "10006 new.eml"


def test_what_is_no_mailbox_is_said() -> None:
    with pytest.raises(DocumentEmpty):
        opened(b"\n \n")
    with pytest.raises(DocumentDamaged, match="no mailbox"):
        opened(b"Just a text.\n\nFrom here to there.\n")


def test_a_message_is_read_up_to_the_limit_and_one_that_is_not_there_is_named() -> None:
    container = opened(FIRST)
    with pytest.raises(DocumentUnsupported, match="larger than the limit"):
        container.read(container.members[0], 10)
    with pytest.raises(DocumentDamaged, match="no '0009"):
        container.read("0009.eml", 10)


def test_a_mailbox_is_recognised_without_its_extension() -> None:
    assert looks_like_mailbox(
        b"From a@b.c Mon Jan  1 10:00:00 2024\nReceived: x\nDate: y\nFrom: a\nMessage-ID: <1>\n\nx\n"
    )
    assert not looks_like_mailbox(b"From now on everything\nis different: yes\n\nx\n")
    assert not looks_like_mailbox(b"From: Ann\nDate: today\n\nx\n")


@given(st.lists(st.binary(max_size=200).map(lambda body: body.replace(b"\r", b"")), min_size=1, max_size=6))
def test_every_body_that_a_program_quoted_comes_back_as_it_was(bodies: list[bytes]) -> None:
    def quoted(body: bytes) -> bytes:  # as mboxrd says
        return b"\n".join(b">" + line if line.lstrip(b">").startswith(b"From ") else line for line in body.split(b"\n"))

    head = b"From a@b Mon Jan  1 10:00:00 2024\nSubject: s\nFrom: a\n\n"
    container = opened(b"".join(head + quoted(body) + b"\n\n" for body in bodies))
    assert [container.read(name, 10_000) for name in container.members] == [head + body + b"\n\n" for body in bodies]
