from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.ingest.parse.encoding import decode, looks_like_text

ZH_HANS = "更换电池之前，请先断开主电源，等待五分钟。电池装好以后再接通电源。"
ZH_HANT = "更換電池之前，請先斷開主電源，等待五分鐘。電池裝好以後再接通電源。"
JA = "電池を交換する前に、必ず主電源を切ってください。カバーを外します。"
KO = "배터리를 교체하기 전에 반드시 전원을 끄십시오. 덮개를 여십시오."
RU = "Перед заменой батареи обязательно отключите питание и подождите пять минут."
EL = "Πριν αλλάξετε την μπαταρία, κλείστε τον διακόπτη και περιμένετε."
HE = "לפני החלפת הסוללה יש לנתק את המתח ולהמתין חמש דקות."
AR = "قبل تغيير البطارية يجب فصل التيار والانتظار خمس دقائق."
DE = "Vor dem Tauschen der Batterie den Schalter öffnen – fünf Minuten warten, dann „Start“ drücken."
FR = "Avant de changer la batterie, coupez l'alimentation : l'élève a été prévenu à temps, ça suffit."
PL = "Przed wymianą baterii należy odłączyć zasilanie i odczekać pięć minut. Zażółć gęślą jaźń."
TR = "Pili değiştirmeden önce şalteri kapatın ve beş dakika bekleyin. İşlem güvenlidir."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (ZH_HANS, "gb18030"), (ZH_HANS, "gb2312"), (ZH_HANT, "big5"), (JA, "shift_jis"), (JA, "euc_jp"),
        (JA, "iso2022_jp"), (KO, "euc_kr"), (RU, "koi8_r"), (RU, "cp1251"), (RU, "iso8859_5"), (RU, "cp866"),
        (EL, "cp1253"), (HE, "cp1255"), (AR, "cp1256"), (DE, "cp1252"), (FR, "latin-1"), (PL, "cp1250"), (TR, "cp1254"),
        ("Müller", "latin-1"), ("café", "cp1252"), ("資訊科技", "big5"), ("カタカナ", "euc_jp"), ("한국어", "euc_kr"),
    ],
)  # fmt: skip
def test_legacy_encodings_are_recognised(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert decoded.guessed


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_decides(encoding: str) -> None:
    decoded = decode(DE.encode(encoding))
    assert decoded.text == DE
    assert not decoded.guessed


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", [DE, "name,amount\nbolt,12\n" * 5])
def test_wide_encodings_without_a_mark(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text
    assert looks_like_text(text.encode(encoding))


@given(st.text())
def test_utf_8_is_taken_as_it_is(text: str) -> None:
    text = text.replace("\x00", "").replace("\x1b", "").removeprefix("\ufeff")
    assert decode(text.encode()).text == text


@given(st.binary(max_size=300))
def test_any_bytes_become_text(data: bytes) -> None:
    looks_like_text(data)
    decode(data).text.encode("utf-8")  # no lone surrogate comes out


def test_one_bad_byte_does_not_spoil_a_utf_8_text() -> None:
    decoded = decode((DE * 3).encode() + b"\xff" + DE.encode())
    assert decoded.text == DE * 3 + "\ufffd" + DE


def test_escape_codes_of_a_log_are_not_japanese() -> None:
    log = b"\x1b[32mok\x1b[0m caf\xc3\xa9 \x1b$"
    assert "café" in decode(log).text
    assert looks_like_text(log)


def test_compressed_data_is_not_text() -> None:
    import random

    assert not looks_like_text(random.Random(1).randbytes(5000))
    assert not looks_like_text(b"\x00\x01\x02\x03" * 100)
