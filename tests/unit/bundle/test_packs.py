"""Wheels go into packs and come out again as they were listed, or are refused by name."""

from __future__ import annotations

import hashlib
import lzma
import random
import zipfile
from pathlib import Path

import pytest
from unit.bundle import craft

from edgerag.bundle.carried import packs
from edgerag.bundle.carried.manifest import File, Pack
from edgerag.bundle.carried.refused import Refused
from edgerag.bundle.pack import make_packs, write_bare
from edgerag.bundle.wheel import Wheel, read_wheel
from edgerag.errors import BundleError

X86, ARM = "linux-x86_64", "linux-aarch64"
BOTH = frozenset({X86, ARM})
NOISE = random.Random(1).randbytes(400_000)


def native(folder: Path, name: str, python: str, machine: str) -> Wheel:
    """Most of it is the same for each Python."""
    files = {f"{name}/lib.so": NOISE, f"{name}/_{python}.so": python.encode() * 100}
    tag = f"{python}-{python}-{machine.replace('-', '_')}"
    return read_wheel(craft.wheel(folder, name, "1.0", tag=tag, files=files))


def packed(wheels: dict[Wheel, frozenset[str]], scratch: Path) -> list[tuple[Pack, Path]]:
    scratch.mkdir()
    platforms = {wheel.path.name: machines for wheel, machines in wheels.items()}
    return make_packs(list(wheels), platforms, scratch, progress=lambda _done, _whole: None)


def put(pack: Pack, data: bytes, folder: Path) -> Path:
    (folder / "packs").mkdir(parents=True)
    (folder / pack.file).write_bytes(data)
    return folder


def stream(data: bytes, **filters: int) -> bytes:
    return lzma.compress(data, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, **filters}])


def pack_of(data: bytes, *, size_bytes: int | None = None) -> Pack:
    size = len(data) if size_bytes is None else size_bytes
    return Pack("packs/any.xz", (File("wheels/a-1-py3-none-any.whl", size, hashlib.sha256(data).hexdigest()),))


def test_a_wheel_comes_out_with_the_same_files_and_rights(tmp_path: Path) -> None:
    wheel = craft.wheel(tmp_path, "pumps", "1.0", files={"pumps-1.0.data/scripts/run": b"#!python\n"})
    again = tmp_path / "again.whl"
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo("pumps/tool", (2020, 2, 2, 2, 2, 2))
        info.external_attr, info.compress_type = 0o100755 << 16, zipfile.ZIP_DEFLATED
        archive.writestr(info, b"tool " * 1000)
        archive.mkdir("pumps/empty")
    write_bare(wheel, again)
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(again) as after:
        for first, second in zip(before.infolist(), after.infolist(), strict=True):
            assert (first.filename, first.date_time, first.CRC) == (second.filename, second.date_time, second.CRC)
            assert before.read(first) == after.read(second)
            assert second.compress_type == zipfile.ZIP_STORED
        assert after.getinfo("pumps/tool").external_attr >> 16 == 0o100755


def test_what_wheels_have_in_common_is_packed_once(tmp_path: Path) -> None:
    wheels = {native(tmp_path, "pumps", python, X86): frozenset({X86}) for python in ("cp311", "cp312", "cp313")}
    ((pack, file),) = packed(wheels, tmp_path / "scratch")
    assert len(pack.wheels) == 3
    assert sum(wheel.size_bytes for wheel in pack.wheels) > 3 * len(NOISE)
    assert file.stat().st_size < 1.05 * len(NOISE)


def test_each_machine_takes_its_own_pack_and_that_of_all(tmp_path: Path) -> None:
    wheels = {native(tmp_path, "pumps", "cp311", machine): frozenset({machine}) for machine in (X86, ARM)}
    wheels |= {read_wheel(craft.wheel(tmp_path, "seals", "2.0")): BOTH}
    made = dict(packed(wheels, tmp_path / "scratch"))
    assert {pack.file for pack in made} == {"packs/any.xz", f"packs/{X86}.xz", f"packs/{ARM}.xz"}
    (arm,) = [pack for pack in made if pack.file == f"packs/{ARM}.xz"]
    assert [wheel.name for wheel in arm.wheels] == ["wheels/pumps-1.0-cp311-cp311-linux_aarch64.whl"]
    again = dict(packed(wheels, tmp_path / "second"))
    assert {pack: path.read_bytes() for pack, path in again.items()} == {
        pack: path.read_bytes() for pack, path in made.items()
    }


def test_only_the_wheels_that_are_asked_for_are_written(tmp_path: Path) -> None:
    wheels = {native(tmp_path, "pumps", python, X86): frozenset({X86}) for python in ("cp311", "cp312", "cp313")}
    ((pack, file),) = packed(wheels, tmp_path / "scratch")
    folder = put(pack, file.read_bytes(), tmp_path / "staged")
    second = pack.wheels[1]
    packs.unpack(pack, folder, {second.name})
    assert [path.name for path in (folder / "wheels").iterdir()] == [Path(second.name).name]
    with zipfile.ZipFile(folder / second.name) as archive:
        assert archive.testzip() is None
        assert archive.read("pumps/_cp312.so") == b"cp312" * 100


@pytest.mark.parametrize("place", [0, 10, 0.1, 0.5, 0.9])
def test_a_changed_pack_is_refused_by_name(tmp_path: Path, place: float) -> None:
    """Also where its own digest was not compared before."""
    ((pack, file),) = packed({native(tmp_path, "pumps", "cp311", X86): frozenset({X86})}, tmp_path / "scratch")
    data = bytearray(file.read_bytes())
    data[place if isinstance(place, int) else int(place * len(data))] ^= 1
    folder = put(pack, bytes(data), tmp_path / "staged")
    with pytest.raises(Refused, match=rf"packs/{X86}\.xz"):
        packs.unpack(pack, folder, {wheel.name for wheel in pack.wheels})


@pytest.mark.parametrize("cut", [0, 1, 100, 200_000])
def test_a_pack_that_is_cut_short_is_refused(tmp_path: Path, cut: int) -> None:
    data = stream(NOISE)
    folder = put(pack_of(NOISE), data[:cut], tmp_path)
    with pytest.raises(Refused, match="is cut short"):
        packs.unpack(pack_of(NOISE), folder, {"wheels/a-1-py3-none-any.whl"})


def test_a_pack_with_less_than_is_listed_is_refused(tmp_path: Path) -> None:
    pack = pack_of(b"abc", size_bytes=1000)
    with pytest.raises(Refused, match="ends before what the manifest lists"):
        packs.unpack(pack, put(pack, stream(b"abc"), tmp_path), {"wheels/a-1-py3-none-any.whl"})


def test_no_more_is_unpacked_than_is_listed(tmp_path: Path) -> None:
    """A gigabyte of zeros is some kilobytes; written are the three bytes that the manifest has."""
    pack = pack_of(bytes(3))
    packs.unpack(pack, put(pack, stream(bytes(100_000_000)), tmp_path), {"wheels/a-1-py3-none-any.whl"})
    assert (tmp_path / "wheels" / "a-1-py3-none-any.whl").read_bytes() == bytes(3)


def test_a_pack_that_asks_for_more_memory_than_ours_do_is_refused(tmp_path: Path) -> None:
    data = stream(b"abc", dict_size=256 << 20, mode=lzma.MODE_FAST, mf=lzma.MF_HC3)
    with pytest.raises(Refused, match=r"packs/any\.xz cannot be unpacked"):
        packs.unpack(pack_of(b"abc"), put(pack_of(b"abc"), data, tmp_path), {"wheels/a-1-py3-none-any.whl"})


def test_where_memory_is_wanting_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object, **__: object) -> None:
        raise MemoryError

    folder = put(pack_of(b"abc"), stream(b"abc"), tmp_path)
    monkeypatch.setattr(lzma, "LZMADecompressor", none_left)
    with pytest.raises(Refused, match=r"packs/any\.xz cannot be unpacked: that takes 96 MB of memory"):
        packs.unpack(pack_of(b"abc"), folder, {"wheels/a-1-py3-none-any.whl"})


def test_a_damaged_wheel_is_named_when_it_is_packed(tmp_path: Path) -> None:
    wheel = native(tmp_path, "pumps", "cp311", X86)
    data = bytearray(wheel.path.read_bytes())
    data[len(data) // 2] ^= 1
    wheel.path.write_bytes(data)
    with pytest.raises(BundleError, match=r"pumps-1\.0-.*is damaged"):
        packed({wheel: frozenset({X86})}, tmp_path / "scratch")
