from __future__ import annotations

import base64
import shutil
import subprocess
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.ingest.mail_craft import HEAD, HTML, PLAIN, attachment, nested, parts

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted, DocumentError, DocumentUnsupported
from edgerag.ingest.parse import mime
from edgerag.ingest.parse.mail import parse
from edgerag.ingest.parse.source import Container, Source
from edgerag.types import ParsedDocument

SHOWN = "Hello\n\nFrom: Ann <ann@example.org>\nTo: Bob <bob@example.org>\nDate: 2024-03-01T09:30:00+01:00\n"


def encoded(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def read(text: str | bytes, name: str = "a.eml") -> ParsedDocument:
    found = parse(Source(encoded(text), name))
    assert isinstance(found, ParsedDocument)
    return found


def opened(text: str | bytes, name: str = "a.eml") -> tuple[Container, ParsedDocument]:
    found = parse(Source(encoded(text), name))
    assert isinstance(found, Container)
    assert found.document is not None
    return found, found.document


def test_a_mail_is_its_subject_its_people_its_date_and_its_text() -> None:
    document = read(HEAD + "Cc: Eve <eve@example.org>\n\nDear Bob,\n\n> Did you?\nYes.  \n\n-- \nAnn\n")
    assert document.text == SHOWN.replace("Date:", "Cc: Eve <eve@example.org>\nDate:") + (
        "\nDear Bob,\n\n> Did you?\nYes.\n\n--\nAnn"
    )
    assert document.title == "Hello"
    assert document.media_type == "message/rfc822"
    assert [(h.level, h.title, h.start) for h in document.headings] == [(1, "Hello", 0)]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end(line_end: str) -> None:
    text = parts("alternative", PLAIN, HTML).replace("\n", line_end)
    assert read(text).text == SHOWN + "\nPlain words."


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_a_mail_saved_in_another_encoding(mark: str) -> None:
    text = parts("alternative", "Content-Type: text/plain; charset=utf-8\n\nGrüße", HTML)
    assert read(text.encode(mark)).text == SHOWN + "\nGrüße"


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("utf-8", "Grüße ≠"),
        ("iso-8859-1", "Grüße “quoted”"),  # what Windows programs call so is cp1252
        ("koi8-r", "Привет, мир"),
        ("gb2312", "你好，世界"),
        ("iso-2022-jp", "こんにちは世界"),
        ("us-ascii", "wrongly labelled: ü"),
        ("iso-8859-15", "really UTF-8: ü €"),
        ("x-unknown", "Grüße"),
    ],
)
@pytest.mark.parametrize("transfer", ["8bit", "base64", "quoted-printable"])
def test_the_character_set_of_the_part_is_used(charset: str, text: str, transfer: str) -> None:
    codec = {"iso-8859-1": "cp1252", "gb2312": "gb18030", "us-ascii": "utf-8", "iso-8859-15": "utf-8"}.get(charset)
    data = text.encode(codec or ("utf-8" if charset == "x-unknown" else charset))
    if transfer == "base64":
        data = base64.encodebytes(data)
    elif transfer == "quoted-printable":
        data = b"".join(b"=%02X" % byte for byte in data)
    head = f"{HEAD}Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: {transfer}\n\n"
    assert read(head.encode() + data).text == SHOWN + "\n" + text


def test_html_is_read_where_plain_text_is_missing_or_says_next_to_nothing() -> None:
    assert read(parts("mixed", HTML)).text == SHOWN + "\nPart\n\nFormatted words."
    stub = "Content-Type: text/plain\n\nUse another program."
    long = "Content-Type: text/html\n\n<p>" + "word " * 50 + "</p>"
    assert read(parts("alternative", stub, long)).text.endswith("word word")
    assert read(parts("alternative", "Content-Type: text/plain\n\n \n", HTML)).text.endswith("Formatted words.")
    document = read(parts("alternative", HTML, "Content-Type: text/plain\n\n"))
    assert [(h.level, h.title) for h in document.headings] == [(1, "Hello"), (2, "Part")]
    assert all(document.text[h.start :].startswith(h.title) for h in document.headings)


def test_flowed_lines_are_joined_and_quotations_kept_apart() -> None:
    text = "This line goes \non here.\n> quoted that \n> goes on\nAn own line.\n-- \nAnn\n"
    document = read(HEAD + 'Content-Type: text/plain; format="flowed"\n\n' + text)
    assert document.text.endswith("\nThis line goes on here.\n> quoted that goes on\nAn own line.\n--\nAnn")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("=?utf-8?B?R3LDvMOfZQ==?=", "Grüße"),
        ("=?utf-8?q?Gr=C3=BC?= =?utf-8?q?=C3=9Fe_an_alle?=", "Grüße an alle"),
        ("=?utf-8?b?w7w?= =?utf-8?b?w58=?=", "üß"),  # padding left out
        ("=?utf-8?b?4oI=?=\n =?utf-8?b?rA==?= 5", "€ 5"),  # cut inside a character
        ("=?iso-2022-jp?b?GyRCJCIbKEI=?=", "あ"),
        ("a =?utf-8?q?b?= c", "a b c"),
        ("=?nonsense?q?caf=C3=A9?=", "café"),
        ("=?utf-8?x?abc?=", "=?utf-8?x?abc?="),
        ("=?utf-8?q?", "=?utf-8?q?"),
        ("folded\n over\n\tlines", "folded over lines"),
        ("raw Grüße", "raw Grüße"),
        ("an\x1b[31m escape\x00", "an[31m escape"),
    ],
)
def test_headers_are_decoded(written: str, shown: str) -> None:
    document = read(f"From: a@example.org\nSubject: {written}\n\nText\n")
    assert document.text.startswith(shown + "\n\nFrom: a@example.org")


@pytest.mark.parametrize("date", ["<HR>", "Fri, 99 Foo 2024", "Mon, 1 Jan 99999999999 00:00:00 +9999"])
def test_a_date_that_is_none_stays_as_it_is_written(date: str) -> None:
    assert f"Date: {date}\n" in read(f"From: a@example.org\nSubject: S\nDate: {date}\n\nText\n").text


def test_broken_headers_cost_nothing_but_themselves() -> None:
    broken = (
        'From: "unclosed <a@b\nTo: ,,,;:<>@@\nCc: =?utf-8?b?=====?=\nSubject: Still\n'
        "Content-Type: text/plain; charset*=utf-8'; charset*999999999999999*=x; ;;=\n"
        "Content-Disposition: ; filename*=\n\nText\n"
    )
    document = read(broken)
    assert document.title == "Still"
    assert document.text.endswith("Text")


# ---------------------------------------------------------------- members


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("filename=plan.pdf", "plan.pdf"),
        ('filename="=?utf-8?b?w7xiZXI=?=.pdf"', "über.pdf"),
        ("filename*=utf-8''%C3%BCber%20uns.pdf", "über uns.pdf"),
        ("filename*0*=utf-8''%C3%BCb; filename*1*=er.pdf", "über.pdf"),
        ('filename="/etc/../passwd"', "passwd"),
        ('filename="C:\\\\temp\\\\plan.doc"', "plan.doc"),
        ('filename="über.txt"', "über.txt"),
        ('filename=".."', "attachment 1"),
        ("", "attachment 1"),
    ],
)
def test_attachments_are_members_under_their_decoded_names(written: str, name: str) -> None:
    container, document = opened(parts("mixed", PLAIN, attachment(written, b"\x00\xffdata")))
    assert container.members == (name,)
    assert container.read(name, 100) == b"\x00\xffdata"
    assert document.text == SHOWN + f"Attachments: {name}\n\nPlain words."


def test_equal_names_are_told_apart_and_the_limit_holds() -> None:
    container, _ = opened(parts("mixed", *[attachment("filename=a.txt", b"x" * n) for n in (1, 2, 3000)]))
    assert container.members == ("a.txt", "a (2).txt", "a (3).txt")
    assert [len(container.read(name, 3000)) for name in container.members] == [1, 2, 3000]
    with pytest.raises(DocumentUnsupported, match="larger than the limit"):
        container.read("a (3).txt", 2999)
    with pytest.raises(DocumentDamaged, match="no 'b"):
        container.read("b.txt", 10)


def test_an_attached_message_keeps_its_bytes() -> None:
    inner = "From: x@example.org\nSubject: A / B\nX-Odd:   kept as  is\n\nInner text\n\n"
    container, _ = opened(parts("mixed", PLAIN, f"Content-Type: message/rfc822\n\n{inner}"))
    assert container.members == ("A - B.eml",)
    assert container.read("A - B.eml", 1000) == inner.encode()
    in_base64 = attachment("filename=old.msg", inner.encode(), "message/rfc822")
    container, _ = opened(parts("mixed", PLAIN, in_base64))
    assert container.read("old.msg.eml", 1000) == inner.encode()


def test_a_digest_is_a_mail_of_mails() -> None:
    container, _ = opened(parts("digest", "\nSubject: One\nFrom: a@b\n\n1", "\nSubject: Two\nFrom: a@b\n\n2"))
    assert container.members == ("One.eml", "Two.eml")


def test_pictures_of_the_text_are_left_out_and_attached_ones_are_not() -> None:
    logo = "Content-Type: image/png; name=logo.png\nContent-ID: <logo>\nContent-Disposition: inline\n\nx"
    related = nested("related", "rel", HTML, logo)
    container, document = opened(
        parts("mixed", nested("alternative", "alt", PLAIN, related), attachment("filename=p.jpg", b"x", "image/jpeg"))
    )
    assert container.members == ("p.jpg",)
    assert document.warnings == ("Left out: 1 picture inside the text.",)


def test_what_is_attached_beside_the_version_that_is_not_read_is_kept() -> None:
    rich = nested("mixed", "mix", HTML, attachment("filename=a.pdf", b"%PDF-"), HTML)
    container, document = opened(parts("alternative", "Content-Type: text/plain\n\nPart Formatted words.", rich))
    assert container.members == ("a.pdf",)
    assert document.text.endswith("Part Formatted words.")


def test_texts_of_one_mail_follow_each_other_and_files_of_text_are_members() -> None:
    patch = "Content-Type: text/x-diff; name=a.patch\nContent-Disposition: inline\n\n+1"
    named = "Content-Type: text/plain; name=notes.txt\n\nnotes"
    invitation = "Content-Type: text/calendar\n\nBEGIN:VCALENDAR"
    container, document = opened(parts("mixed", PLAIN, patch, named, invitation, "Content-Type: text/plain\n\nFooter"))
    assert container.members == ("a.patch", "notes.txt", "attachment 3.ics")
    assert document.text.endswith("\n\nPlain words.\n\nFooter")


def test_a_report_says_what_the_server_says() -> None:
    status = (
        "Content-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nFinal-Recipient: rfc822; bob@example.org"
    )
    original = "Content-Type: text/rfc822-headers\n\nSubject: The lost one"
    document = read(parts("report", PLAIN, status, original))
    assert "Final-Recipient: rfc822; bob@example.org" in document.text
    assert document.text.endswith("Subject: The lost one")


def test_winmail_dat_is_named() -> None:
    container, document = opened(parts("mixed", PLAIN, attachment("filename=winmail.dat", b"x", "application/ms-tnef")))
    assert container.members == ("winmail.dat",)
    assert "winmail.dat" in document.warnings[0]


# ---------------------------------------------------------------- signed and encrypted


def test_signed_mails_are_read_and_their_signatures_are_no_members() -> None:
    signature = "Content-Type: application/pgp-signature; name=signature.asc\n\n-----BEGIN PGP SIGNATURE-----"
    assert read(parts("signed", PLAIN, signature)).text == SHOWN + "\nPlain words."
    inline = (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nWords\n- - a list\n\n"
        "-----BEGIN PGP SIGNATURE-----\nxyz\n-----END PGP SIGNATURE-----\n"
    )
    assert read(HEAD + "\n" + inline).text == SHOWN + "\nWords\n- a list"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "\n-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n",
        parts('encrypted; protocol="application/pgp-encrypted"', "\nVersion: 1", "\n-----BEGIN PGP MESSAGE-----"),
        HEAD + "Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n\n0\x01\x02",
        parts("mixed", "Content-Type: application/x-pkcs7-mime; name=smime.p7m\n\nMIIB"),
    ],
)
def test_encrypted_mails_are_named(text: str) -> None:
    with pytest.raises(DocumentEncrypted, match=r"encrypted with (PGP|S/MIME)"):
        parse(Source(text.encode(), "a.eml"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its message with openssl")
@pytest.mark.parametrize("options", [[], ["-stream", "-indef"]], ids=["definite", "in pieces"])
def test_a_mail_inside_its_signature_is_read(tmp_path: Path, options: list[str]) -> None:
    openssl = shutil.which("openssl")
    assert openssl is not None

    def run(*arguments: str) -> bytes:
        return subprocess.run([openssl, *arguments], cwd=tmp_path, check=True, capture_output=True).stdout

    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "k.pem", "-out", "c.pem", "-subj", "/CN=a")
    (tmp_path / "m.txt").write_text("Content-Type: text/plain; charset=utf-8\n\n" + "Grüße " * 3000)
    signed = run("smime", "-sign", "-nodetach", "-signer", "c.pem", "-inkey", "k.pem", "-in", "m.txt", *options)
    assert "Grüße".encode() not in signed
    assert read(HEAD.encode() + signed).text.count("Grüße") == 3000


# ---------------------------------------------------------------- other files


def test_a_saved_page_is_the_page() -> None:
    page = "Content-Type: text/html; charset=utf-8\nContent-ID: <frame-1>\n\n<title>The page</title><p>Seen ü</p>"
    advert = "Content-Type: text/html\n\n<p>Frame</p>"
    text = parts("related", advert, page, head="From: <Saved by Blink>\nSubject: Other\n")
    document = read(text.replace("boundary=", 'start="<frame-1>"; boundary='), "page.mhtml")
    assert (document.text, document.title, document.media_type) == ("Seen ü", "The page", "multipart/related")
    empty = "Content-Type: text/html\n\n<frameset><frame src=x></frameset>"
    framed = read(parts("related", empty, advert, head="From: <Saved by Blink>\nSubject: Other\n"), "page.mht")
    assert (framed.text, framed.title) == ("Frame", "Other")


def test_a_file_of_apple_mail() -> None:
    mail = (HEAD + "\nText\n").encode()
    data = b"%-10d\n" % len(mail) + mail + b"<?xml version='1.0'?><plist/>"
    assert read(data, "1.emlx").text == SHOWN + "\nText"


def test_a_text_that_is_only_named_like_a_mail_is_a_text() -> None:
    document = read("Note: buy milk\n\nand bread\n", "note.eml")
    assert (document.text, document.media_type) == ("Note: buy milk\n\nand bread\n", "text/plain")


@pytest.mark.parametrize("data", [b"", b"\n \r\n", b"From: a@b\n\n", b"MIME-Version: 1.0\n\n\n"])
def test_a_mail_that_says_nothing_is_empty(data: bytes) -> None:
    with pytest.raises(DocumentEmpty):
        parse(Source(data, "a.eml"))


def test_mails_are_recognised_without_their_extension() -> None:
    assert mime.looks_like_mail(b"Return-Path: <a@b>\nReceived: from x\n\tby y\nFrom: a@b\nDate: d\n\nText")
    assert not mime.looks_like_mail(b"From: Ann\nTo: Bob\nSubject: Memo\n\nText")
    assert not mime.looks_like_mail(b"From: Ann\nDate: today\nMessage-ID: 1\nno header here\n\nText")
    assert not mime.looks_like_mail(b"title: x\ndate: y\nreceived: z\n\nText")


# ---------------------------------------------------------------- hostile


def test_a_boundary_that_is_missing_wrong_or_never_closed() -> None:
    text = parts("alternative", PLAIN, HTML)
    expected = SHOWN + "\nPlain words."
    assert read(text.replace('; boundary="b0und"', "")).text == expected
    assert read(text.replace('"b0und"', '"other"')).text == expected
    assert read(text.removesuffix("--b0und--\n")).text == expected
    assert read(text.replace("--b0und--", "--b0und-- garbage")).text == expected
    assert "no boundaries at all" in read(HEAD + "Content-Type: multipart/mixed\n\nno boundaries at all\n").text


def test_nesting_without_end_is_refused() -> None:
    text = PLAIN
    for depth in range(200):
        text = nested("mixed", f"b{depth}x", text)
    with pytest.raises(DocumentDamaged, match="nested"):
        parse(Source((HEAD + text).encode(), "a.eml"))


def test_parts_without_end_are_refused_with_their_number() -> None:
    with pytest.raises(DocumentUnsupported, match="10,001 parts"):
        parse(Source(parts("mixed", *["\nx"] * 10_001).encode(), "a.eml"))


@pytest.mark.parametrize(
    "attack",
    [
        "Subject: " + "=?utf-8?q?" * 20_000,
        "Subject: " + "=?a?b?" * 20_000 + "?=",
        "Content-Type: text/plain" + "; a*0=b" * 20_000,
        "Content-Type: text/plain; charset=idna",
        "Content-Type: text/plain; charset=zlib",
        "Date: " + "(" * 5_000,
        "To: " + "(" * 20_000 + ",<" * 20_000,
        "X: y\n" * 20_000 + "Z: 1",
        "Content-Type: multipart/mixed; boundary=" + "-" * 5_000,
    ],
    ids=lambda attack: attack[:30],
)
def test_headers_that_are_built_to_take_time_are_read_or_named(attack: str) -> None:
    assert "Text" in read(f"From: a@example.org\n{attack}\n\nText\n" + "-" * 10_000).text


MAIL = EmailMessage()
MAIL["From"], MAIL["Subject"] = "a@example.org", "Grüße"
MAIL.set_content("Grüße\n" * 20)
MAIL.add_alternative("<h1>Grüße</h1><p>x</p>", subtype="html")
MAIL.add_attachment(b"data" * 50, maintype="application", subtype="pdf", filename="übersicht.pdf")
WHOLE = MAIL.as_bytes()


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_damage_anywhere_is_named_and_nothing_else_is_raised(data: st.DataObject) -> None:
    damaged = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(0, 6))):
        damaged[data.draw(st.integers(0, len(WHOLE) - 1))] = data.draw(st.sampled_from(b'\n\r:;="<>?*\x00\xff-_ a'))
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(0, len(WHOLE))) :]
    try:
        found = parse(Source(bytes(damaged), "a.eml"))
        if isinstance(found, Container):
            for name in found.members:
                found.read(name, 10**6)
            document = found.document
            assert document is not None
        else:
            document = found
        assert all(document.text[h.start :].startswith(h.title[:50]) for h in document.headings)
    except DocumentError:
        pass
