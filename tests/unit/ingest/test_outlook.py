from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest
from unit.ingest.outlook_craft import Attached, Message, msg

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted, DocumentError, DocumentUnsupported
from edgerag.ingest.parse import lzfu, mail
from edgerag.ingest.parse.outlook import parse
from edgerag.ingest.parse.source import Container, Source
from edgerag.types import ParsedDocument

SENT = datetime(2024, 3, 1, 9, 30, tzinfo=UTC)


def read(message: Message) -> ParsedDocument:
    found = parse(Source(msg(message), "note.msg"))
    assert isinstance(found, ParsedDocument)
    return found


def opened(message: Message) -> Container:
    found = parse(Source(msg(message), "note.msg"))
    assert isinstance(found, Container)
    return found


def test_a_message_is_laid_out_as_a_mail() -> None:
    document = read(
        Message(
            subject="The offer",
            body="Dear Bob,\r\n\r\n> what did you say?\r\nYes.\r\n",
            to=[("Bob", "bob@example.org"), ("", "eve@example.org")],
            cc=[("Zoë", "/O=EXCHANGE/CN=ZOE")],
            sent=SENT,
        )
    )
    assert document.text == (
        "The offer\n\nFrom: Ann <ann@example.org>\nTo: Bob <bob@example.org>, eve@example.org\nCc: Zoë\n"
        "Date: 2024-03-01T09:30:00+00:00\n\nDear Bob,\n\n> what did you say?\nYes."
    )
    assert document.title == "The offer"
    assert [(heading.level, heading.title, heading.start) for heading in document.headings] == [(1, "The offer", 0)]
    assert document.media_type == "application/vnd.ms-outlook"


def test_strings_in_a_code_page() -> None:
    assert read(Message(subject="Отчёт", body="Привет, мир", codepage=1251)).text.endswith("Привет, мир")


def test_html_is_read_where_there_is_no_plain_text() -> None:
    document = read(Message(subject="S", html=b"<h1>Plan</h1><p>One &amp; two</p>"))
    assert document.text.endswith("Plan\n\nOne & two")
    heading = document.headings[1]
    assert (heading.level, document.text[heading.start :].startswith("Plan")) == (2, True)


def test_rtf_is_read_where_there_is_nothing_else() -> None:
    rtf = rb"{\rtf1\ansi Only in rich text.}"
    plain = struct.pack("<IIII", len(rtf) + 12, len(rtf), 0x414C454D, 0) + rtf
    assert read(Message(subject="S", rtf=plain)).text.endswith("Only in rich text.")


def test_compressed_rtf_unpacks_to_the_example_of_the_specification() -> None:
    # MS-OXRTFCP 4.1.1
    packed = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    )
    assert lzfu.unpack_rtf(packed, limit=1000) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"


@pytest.mark.parametrize("data", [b"", b"\0" * 16, struct.pack("<IIII", 9, 2**31, 0x75465A4C, 0)])
def test_what_is_no_compressed_rtf_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^it"):
        lzfu.unpack_rtf(data, limit=1000)


def test_attachments_are_members_and_pictures_in_the_text_are_not() -> None:
    container = opened(
        Message(
            subject="S",
            body="see",
            attached=[
                Attached("plan.txt", b"the plan"),
                Attached("../../plan.txt", b"x" * 5000),
                Attached("logo.png", b"\x89PNG", media_type="image/png", flags=4, content_id="logo"),
            ],
        )
    )
    assert container.members == ("plan.txt", "plan (2).txt")
    assert [container.read(name, 10_000) for name in container.members] == [b"the plan", b"x" * 5000]
    assert container.document is not None
    assert "Attachments: plan.txt, plan (2).txt" in container.document.text
    assert container.document.warnings == ("Left out: 1 picture inside the text.",)
    with pytest.raises(DocumentUnsupported, match="larger than the limit"):
        container.read("plan (2).txt", 100)
    with pytest.raises(DocumentDamaged, match=r"no 'other\.txt'"):
        container.read("other.txt", 100)


def test_a_message_in_a_message_is_a_mail_with_its_own_attachments() -> None:
    deepest = Message(subject="Déjà vu", body="third", sent=SENT)
    inner = Message(
        subject="Re: a/b",
        body="first\n\n--edgerag-part",
        attached=[Attached("", deepest), Attached("ü.txt", b"\0\xff")],
    )
    container = opened(Message(subject="Fwd", body="see", attached=[Attached("", inner)]))
    assert container.members == ("Re: a-b.eml",)
    found = mail.parse(Source(container.read("Re: a-b.eml", 10_000), "Re: a-b.eml"))
    assert isinstance(found, Container) and found.document is not None
    assert found.document.title == "Re: a/b"
    assert "first\n\n--edgerag-part" in found.document.text
    assert found.members == ("Déjà vu.eml", "ü.txt")
    assert found.read("ü.txt", 100) == b"\0\xff"
    last = mail.parse(Source(found.read("Déjà vu.eml", 10_000), "x.eml"))
    assert isinstance(last, ParsedDocument) and "Date: 2024-03-01T09:30:00+00:00\n\nthird" in last.text


def test_messages_without_end_are_refused() -> None:
    message = Message(subject="S", body="b")
    for _ in range(30):
        message = Message(subject="S", body="b", attached=[Attached("", message)])
    container = opened(message)
    with pytest.raises(DocumentDamaged, match="nested"):
        container.read(container.members[0], 10**9)


@pytest.mark.parametrize(
    "message",
    [
        Message(kind="IPM.Note.SMIME", attached=[Attached("smime.p7m", b"0\x82junk")]),
        Message(attached=[Attached("a.pgp", b"Version: 1", media_type="application/pgp-encrypted")]),
        Message(body="\r\n-----BEGIN PGP MESSAGE-----\r\nxyz"),
        Message(body="Protected", attached=[Attached("message.rpmsg", b"x")]),
    ],
)
def test_encrypted_messages_are_named(message: Message) -> None:
    with pytest.raises(DocumentEncrypted, match="encrypted"):
        parse(Source(msg(message), "x.msg"))


def test_a_signed_message_is_read() -> None:
    signed = (
        b"Content-Type: multipart/signed; boundary=b\n\n--b\n\nSigned words\n"
        b"--b\nContent-Type: application/pkcs7-signature\n\nx\n--b--\n"
    )
    message = Message(subject="Ü", kind="IPM.Note.SMIME.MultipartSigned", attached=[Attached("smime.p7m", signed)])
    document = read(message)
    assert document.title == "Ü"
    assert document.text.endswith("\n\nSigned words")


def test_nothing_at_all_is_empty() -> None:
    with pytest.raises(DocumentEmpty):
        read(Message())


def test_damage_anywhere_is_named_and_nothing_else_is_raised() -> None:
    whole = msg(Message(subject="S", body="b" * 6000, attached=[Attached("a.txt", b"x" * 5000)]))
    for cut in range(0, len(whole), 211):
        for data in (whole[:cut], whole[:cut] + b"\xff" * 40 + whole[cut + 40 :]):
            try:
                found = parse(Source(data, "x.msg"))
                if isinstance(found, Container):
                    for name in found.members:
                        found.read(name, 10**6)
            except DocumentError:
                pass
