from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgerag.errors import DocumentDamaged, DocumentEmpty, DocumentEncrypted, DocumentError, DocumentUnsupported
from edgerag.ingest.parse import members
from edgerag.ingest.parse.archive import is_tar, parse
from edgerag.ingest.parse.name_encoding import name_encoding
from edgerag.ingest.parse.source import Container, Source

LIMIT = 10_000_000


def zipped(files: Mapping[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files: Mapping[str, bytes], *, format_: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format_) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def raw_named(name: bytes, content: bytes = b"content", *, flags: int = 0, extra: bytes = b"") -> bytes:
    """A stored zip entry whose name is these bytes."""
    size = len(content)
    # version, flags, method, time, date, CRC, both sizes, lengths of name and extra field
    fixed = struct.pack("<HHHHHIIIHH", 20, flags, 0, 0, 0, zlib.crc32(content), size, size, len(name), len(extra))
    body = b"PK\x03\x04" + fixed + name + extra + content
    central = b"PK\x01\x02" + struct.pack("<H", 20) + fixed + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name + extra
    return body + central + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(body), 0)


def opened(data: bytes, name: str = "files.zip") -> Container:
    return parse(Source(data, name))


def content(container: Container) -> dict[str, bytes]:
    return {name: container.read(name, LIMIT) for name in container.members}


FILES = {"b/report.txt": b"one " * 1000, "a.txt": b"two", "empty.txt": b""}


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=str
)
def test_a_zip_gives_its_files_in_order(method: int) -> None:
    container = opened(zipped({"folder/": b"", **FILES}, method=method))
    assert container.members == tuple(FILES)
    assert content(container) == FILES
    assert container.document is None


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("format_", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_tar_gives_its_files_whatever_packs_it(pack: Callable[[bytes], bytes], format_: int) -> None:
    files = {**FILES, "é" + "long/" * 30 + "n.txt": b"deep"} if format_ != tarfile.USTAR_FORMAT else FILES
    assert content(opened(pack(tarred(files, format_=format_)), "files.tar.gz")) == files


@pytest.mark.parametrize(("pack", "suffix"), [(gzip.compress, "gz"), (bz2.compress, "bz2"), (lzma.compress, "xz")])
def test_a_single_packed_file_is_one_member(pack: Callable[[bytes], bytes], suffix: str) -> None:
    container = opened(pack(b"x" * 3_000_000), f"notes.log.{suffix}")
    assert container.members == ("notes.log",)
    assert container.read("notes.log", 3_000_000) == b"x" * 3_000_000
    with pytest.raises(DocumentUnsupported, match="larger than the limit"):
        container.read("notes.log", 2_999_999)
    assert opened(pack(b"x") + b"\0" * 3 if suffix == "gz" else pack(b"x"), "noname").members == ("noname",)


def test_concatenated_gzip_streams_and_trailing_garbage_are_read_as_gzip_does() -> None:
    data = gzip.compress(b"one ") + gzip.compress(b"two") + b"garbage"
    assert content(opened(data, "log.gz")) == {"log": b"one two"}


def test_hidden_files_folders_links_and_devices_are_left_out() -> None:
    hidden = {".env": b"x", "a/.git/config": b"x", "__MACOSX/a/b.txt": b"x", "a/.DS_Store": b"x", "a/b.txt": b"kept"}
    assert opened(zipped(hidden)).members == ("a/b.txt",)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("dev", tarfile.CHRTYPE),
                           ("pipe", tarfile.FIFOTYPE), ("dir", tarfile.DIRTYPE)):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("./a/file.txt")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"kept"))
    assert content(opened(out.getvalue(), "x.tar")) == {"a/file.txt": b"kept"}
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zip_file:
        zip_file.writestr(link, "/etc/passwd")
        zip_file.writestr("a.txt", "kept")
    assert opened(out.getvalue()).members == ("a.txt",)


@pytest.mark.parametrize(
    ("name", "harmless"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\Users\\me\\plan.txt", "Users/me/plan.txt"),
        ("c:plan.txt", "plan.txt"),
        ("\\\\server\\share\\plan.txt", "server/share/plan.txt"),
        ("a/./b//c.txt", "a/b/c.txt"),
        (".\u200b./a.txt", "a.txt"),
        ("a\x1b[31m.txt", "a [31m.txt"),
        ("\u202etxt.exe", "txt.exe"),
    ],
)
def test_names_are_labels_and_never_paths(name: str, harmless: str) -> None:
    assert members.label(name) == harmless
    assert opened(tarred({name: b"x"}), "x.tar").members == (harmless,)


@given(st.text(max_size=300))
@settings(max_examples=300)
def test_a_label_never_leaves_its_archive_and_stays_short(name: str) -> None:
    label = members.label(name)
    assert not label.startswith("/")
    assert "\\" not in label
    assert not {"", ".", ".."} & set(label.split("/")) or not label
    assert label == label.strip()
    assert all(character.isprintable() or character.isspace() for character in label if character < "\x7f")
    assert members.label(label) == label or label[1:2] == ":"


def test_long_names_keep_their_extension_and_different_files_their_own_names() -> None:
    container = opened(tarred({"x" * 500 + ".txt": b"1", "x" * 501 + ".txt": b"2", "../a": b"3", "a": b"4"}), "x.tar")
    first, second, *others = container.members
    assert first.endswith("x.txt") and len(first) < 150
    assert second == first.removesuffix(".txt") + " (2).txt"
    assert others == ["a", "a (2)"]
    assert [container.read(name, 10) for name in container.members] == [b"1", b"2", b"3", b"4"]


def test_of_files_with_the_same_name_the_last_has_it_and_the_others_are_there() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        for name, text in (("a.txt", "old"), ("b.txt", "b"), ("a.txt", "newer"), ("a.txt", "new")):
            archive.writestr(name, text)
    assert content(opened(out.getvalue())) == {
        "a (2).txt": b"old",
        "b.txt": b"b",
        "a (3).txt": b"newer",
        "a.txt": b"new",
    }


@pytest.mark.parametrize(
    ("names", "encoding"),
    [
        (["für Männer.txt", "Übersicht.txt"], "cp437"),
        (["Ærø.txt", "Høst.doc"], "cp850"),
        (["für.txt", "Déjà vu.txt"], "cp1252"),
        (["报告.txt"], "gbk"),
        (["テスト.txt"], "cp932"),
        (["資料.txt", "会議議事録.docx"], "cp932"),
        (["отчет.txt", "Договор.doc"], "cp866"),
        (["Отчет за год.txt"], "cp1251"),
        (["報告書.txt"], "big5"),
        (["보고서.txt"], "cp949"),
        (["naïve.txt"], "utf-8"),
        (["plain.txt"], "ascii"),
    ],
)
def test_names_without_a_named_encoding(names: list[str], encoding: str) -> None:
    raw = [name.encode(encoding) for name in names]
    guess = name_encoding(raw)
    assert [name.decode(guess) for name in raw] == names


def test_names_in_a_zip_follow_the_flag_the_extra_field_or_the_guess() -> None:
    assert opened(raw_named("für.txt".encode(), flags=0x800)).members == ("für.txt",)
    assert opened(raw_named("für.txt".encode("cp437"))).members == ("für.txt",)
    assert opened(raw_named("テスト.txt".encode("cp932"))).members == ("テスト.txt",)
    raw = b"f_r.txt"
    field = b"\x01" + struct.pack("<I", zlib.crc32(raw)) + "für.txt".encode()
    extra = struct.pack("<HH", 0x7075, len(field)) + field
    assert opened(raw_named(raw, extra=extra)).members == ("für.txt",)
    # the field of another name, after a tool that renamed without knowing it
    assert opened(raw_named(b"new.txt", extra=extra)).members == ("new.txt",)


# ---------------------------------------------------------------- damaged, protected, hostile


def test_a_password_is_named() -> None:
    locked = raw_named(b"a.txt", flags=1)
    with pytest.raises(DocumentEncrypted, match="password"):
        opened(locked)
    data = bytearray(zipped({"a.txt": b"open", "b.txt": b"locked"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.rfind(mark) + offset] |= 1
    container = opened(bytes(data))
    assert container.read("a.txt", 100) == b"open"
    with pytest.raises(DocumentEncrypted, match="password"):
        container.read("b.txt", 100)


def test_a_wrong_checksum_is_damage() -> None:
    data = raw_named(b"a.txt", b"content").replace(b"content", b"c0ntent", 1)
    with pytest.raises(DocumentDamaged, match="checksum"):
        opened(data).read("a.txt", 100)
    packed = bytearray(gzip.compress(b"content"))
    packed[-8] ^= 1
    with pytest.raises(DocumentDamaged, match="damaged"):
        opened(bytes(packed), "a.gz").read("a", 100)


def test_a_zip_cut_short_gives_what_is_whole_and_names_what_is_not() -> None:
    data = zipped({f"{n}.txt": bytes(range(256)) * 8 for n in range(5)}, method=zipfile.ZIP_STORED)
    container = opened(data[: 3 * 2100])
    assert container.members == ("0.txt", "1.txt", "2.txt", "3.txt")[: len(container.members)]
    assert len(container.members) >= 3
    assert container.read("1.txt", LIMIT) == bytes(range(256)) * 8
    with pytest.raises(DocumentDamaged, match="cut short"):
        container.read(container.members[-1], LIMIT)
    assert container.document is not None
    assert "cut short" in container.document.warnings[0]


def test_a_zip_written_as_a_stream_is_read_without_its_directory() -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, piece: object) -> int:
            self.data += memoryview(piece)  # type: ignore[arg-type]
            return len(memoryview(piece))  # type: ignore[arg-type]

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", b"first " * 100)
        archive.writestr("b.txt", b"second " * 100)
    cut = bytes(pipe.data[: pipe.data.find(b"PK\x01\x02")])
    assert content(opened(cut)) == {"a.txt": b"first " * 100, "b.txt": b"second " * 100}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_a_tar_cut_short_gives_what_is_whole_and_names_what_is_not(pack: Callable[[bytes], bytes]) -> None:
    noise = bytes(hash((n, 7)) & 255 for n in range(30_000))
    data = tarred({f"{n}.bin": noise + bytes([n]) for n in range(40)})
    data = data[:1_000_000] if pack is bytes else pack(data)[: len(pack(data)) * 3 // 4]
    container = opened(data, "x.tar")
    assert len(container.members) >= 1
    assert container.read("0.bin", LIMIT) == noise + b"\0"
    with pytest.raises(DocumentDamaged, match="cut short"):
        container.read(container.members[-1], LIMIT)
    assert container.document is not None
    assert "cut short" in container.document.warnings[0]


def test_what_stands_behind_a_damaged_header_of_a_tar_is_still_read() -> None:
    data = bytearray(tarred({"a.txt": b"one", "b.txt": b"two", "c.txt": b"three"}, format_=tarfile.USTAR_FORMAT))
    data[1024:1040] = b"\xff" * 16
    container = opened(bytes(data), "x.tar")
    assert content(container) == {"a.txt": b"one", "c.txt": b"three"}
    assert container.document is not None
    assert "damaged in the middle" in container.document.warnings[0]


def test_an_archive_with_nothing_in_it_is_empty() -> None:
    for data in (zipped({}), zipped({".hidden": b"x", "folder/": b""}), tarred({".hidden": b"x"})):
        with pytest.raises(DocumentEmpty, match="no files"):
            opened(data)


@pytest.mark.parametrize("make", [zipped, tarred])
def test_more_members_than_are_read_are_refused_with_their_number(make: Callable[[dict[str, bytes]], bytes]) -> None:
    files = {f"{n}.txt": b"" for n in range(members.MOST_MEMBERS + 1)}
    with pytest.raises(DocumentUnsupported, match="10,001 files"):
        opened(make(files), "x")


def test_a_member_is_unpacked_no_further_than_is_asked_for() -> None:
    container = opened(zipped({"a.txt": bytes(1000)}))
    with pytest.raises(DocumentUnsupported, match="larger than the limit"):
        container.read("a.txt", 999)
    lying = zipped({"a.txt": bytes(1000)})
    lying = lying.replace(struct.pack("<I", 1000), struct.pack("<I", 10))  # declares less than it unpacks to
    with pytest.raises(DocumentUnsupported, match="larger than the limit"):
        opened(lying).read("a.txt", 999)
    with pytest.raises(DocumentDamaged, match="1,000 bytes and not 10"):
        opened(lying).read("a.txt", 1000)


def test_bombs_are_refused() -> None:
    with pytest.raises(DocumentUnsupported, match="bomb"):
        opened(zipped({"zeros": bytes(110_000_000)}))
    packed = lzma.compress(bytes(110_000_000), preset=0)
    container = opened(packed, "zeros.xz")
    with pytest.raises(DocumentUnsupported, match="bomb"):
        container.read("zeros", 10**9)
    with pytest.raises(DocumentUnsupported, match="bomb"):
        opened(lzma.compress(tarred({"zeros": bytes(110_000_000)}), preset=0), "zeros.tar.xz")


def test_entries_that_overlap_are_refused() -> None:
    data = zipped({"a.txt": b"x" * 500, "b.txt": b"y" * 500}, method=zipfile.ZIP_STORED)
    second = data.rfind(b"PK\x01\x02")
    overlapping = data[: second + 42] + bytes(4) + data[second + 46 :]  # both begin at 0
    with pytest.raises(DocumentDamaged, match="overlap"):
        opened(overlapping)


def test_a_sparse_file_larger_than_the_limit_is_not_blown_up() -> None:
    info = tarfile.TarInfo("holes")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:398], header[398:410] = b"00000000000\0", b"00000000000\0"
    header[482], header[483:495] = 0, b"77777777777\0"  # not extended; real size 8 GB
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    container = opened(bytes(header) + bytes(1024), "x.tar")
    assert container.members == ("holes",)
    with pytest.raises(DocumentUnsupported, match="larger than the limit"):
        container.read("holes", LIMIT)


def test_a_method_that_nothing_here_unpacks_is_named() -> None:
    data = bytearray(raw_named(b"a.txt"))
    data[8] = data[data.find(b"PK\x01\x02") + 10] = 9
    with pytest.raises(DocumentUnsupported, match="Deflate64"):
        opened(bytes(data)).read("a.txt", 100)


def test_a_tar_is_known_by_its_checksum_however_old_it_is() -> None:
    old = bytearray(tarred({"a.txt": b"one"}, format_=tarfile.USTAR_FORMAT))
    old[257:265] = bytes(8)
    old[148:156] = b" " * 8
    old[148:156] = b"%06o\0 " % sum(old[:512])
    assert is_tar(bytes(old))
    assert content(opened(bytes(old), "x.tar")) == {"a.txt": b"one"}
    assert not is_tar(bytes(512))
    assert not is_tar(b"From: somebody\n" * 40)


_WHOLE = (
    zipped(FILES),
    zipped(FILES, method=zipfile.ZIP_LZMA),
    tarred(FILES),
    gzip.compress(tarred(FILES)),
    lzma.compress(b"text " * 1000),
)


@given(st.sampled_from(_WHOLE), st.data())
@settings(max_examples=400, deadline=None)
def test_damage_anywhere_is_named_and_nothing_else_is_raised(whole: bytes, data: st.DataObject) -> None:
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 4))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(4, len(whole))) :]
    try:
        container = opened(bytes(damaged))
        for name in container.members:
            container.read(name, LIMIT)
    except DocumentError:
        pass
