"""A bundle that is not what its maker wrote is refused, and every file that is amiss is named."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.bundle import craft

from edgerag.bundle import keys
from edgerag.bundle.carried import contents, manifest, minisign, script
from edgerag.bundle.carried.refused import Refused

ZEROS = "0" * 64
SMALL: dict[str, Any] = {
    "format": "edgerag-bundle",
    "version": 3,
    "edgerag": "1.0",
    "pip": "wheels/pip-1-py3-none-any.whl",
    "targets": [],
    "models": [],
    "libraries": [],
    "packs": [
        {
            "file": "packs/any.xz",
            "wheels": [{"name": "wheels/pip-1-py3-none-any.whl", "size_bytes": 0, "sha256": ZEROS}],
        }
    ],
    "files": [{"name": "packs/any.xz", "size_bytes": 0, "sha256": ZEROS}],
}
PACK = SMALL["packs"][0]
WHEEL = PACK["wheels"][0]
# As it was written before wheels were packed.
OLD: dict[str, Any] = {
    **{name: value for name, value in SMALL.items() if name != "packs"},
    "version": 2,
    "files": [WHEEL],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("made")
    craft.bundle(scratch / "bundle", scratch)
    return scratch / "bundle"


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    target = tmp_path / "bundle"
    for path in folder.rglob("*"):
        if path.is_file():
            (target / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(folder)).write_bytes(path.read_bytes())
    return target


def verify(path: Path, key: minisign.PublicKey | None = None) -> contents.Head:
    with contents.opened(path) as bundle:
        head = contents.head(bundle, str(path), key)
        contents.check(bundle, head.manifest, str(path), sink=lambda _: None, progress=lambda _done, _whole: None)
    return head


def packed(
    folder: Path, target: Path, *, change: Callable[[tarfile.TarInfo, bytes], bytes] = lambda _, data: data
) -> Path:
    """The folder as a .tar; ``change`` may make something else of each member."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for name in ["manifest.json", *(name for name in names if name != "manifest.json")]:
            info = tarfile.TarInfo(f"edgerag-bundle/{name}")
            data = change(info, (folder / name).read_bytes())
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return target


def test_what_was_written_is_whole(folder: Path, tmp_path: Path) -> None:
    head = verify(folder)
    assert "is not signed" in script.verdict(head)
    assert verify(packed(folder, tmp_path / "b.tar")) == head


def test_changed_missing_and_added_files_are_named_together(copy: Path, tmp_path: Path) -> None:
    model = bytearray((copy / "models" / "m.gguf").read_bytes())
    model[3] ^= 1
    (copy / "models" / "m.gguf").write_bytes(model)
    (copy / "README.txt").unlink()
    (copy / "packs" / "more.xz").write_bytes(b"x")
    for path in (copy, packed(copy, tmp_path / "b.tar")):
        with pytest.raises(Refused) as refused:
            verify(path)
        assert refused.value.problems == (
            "README.txt is missing", "models/m.gguf was changed", "packs/more.xz was added",
        )  # fmt: skip
        assert "models/m.gguf was changed" in str(refused.value)


def test_a_longer_file_is_changed(copy: Path) -> None:
    with (copy / "install.py").open("ab") as stream:
        stream.write(b"\n")
    with pytest.raises(Refused, match=r"install\.py was changed"):
        verify(copy)


@pytest.mark.parametrize("kind", ["file", "folder", "pipe"])
def test_a_link_or_a_pipe_is_refused_and_not_followed(copy: Path, kind: str) -> None:
    path = copy / "models" / "m.gguf"
    original = copy.parent / "m.gguf"
    if kind == "folder":
        (copy / "models").rename(copy.parent / "models")
        (copy / "models").symlink_to(copy.parent / "models")
    else:
        path.rename(original)
        path.symlink_to(original) if kind == "file" else os.mkfifo(path)
    with pytest.raises(Refused, match="not a file"):
        verify(copy)


def test_the_manifest_itself_may_be_no_link(copy: Path) -> None:
    (copy / "manifest.json").rename(copy.parent / "manifest.json")
    (copy / "manifest.json").symlink_to(copy.parent / "manifest.json")
    with pytest.raises(Refused, match="not a file"):
        verify(copy)


@pytest.mark.parametrize(
    ("kind", "said"), [(tarfile.SYMTYPE, "is a link"), (tarfile.LNKTYPE, "is a link"), (tarfile.CHRTYPE, "is a device"),
                       (tarfile.FIFOTYPE, "is a pipe"), (tarfile.DIRTYPE, "is a folder"), (b"S", "strange kind"),
                       (tarfile.XHDTYPE, "strange kind")],
)  # fmt: skip
def test_what_is_no_file_in_a_tar_is_refused_by_name(folder: Path, tmp_path: Path, kind: bytes, said: str) -> None:
    def change(info: tarfile.TarInfo, data: bytes) -> bytes:
        if info.name.endswith("README.txt"):
            info.type, info.linkname = kind, "/etc/passwd"
            return b""
        return data

    with pytest.raises(Refused, match=said):
        verify(packed(folder, tmp_path / "b.tar", change=change))


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "edgerag-bundle/../x", "edgerag-bundle/README.txt/x"])
def test_a_path_that_leads_elsewhere_in_a_tar_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    def change(info: tarfile.TarInfo, data: bytes) -> bytes:
        info.name = name if info.name.endswith("README.txt") else info.name
        return data

    with pytest.raises(Refused):
        verify(packed(folder, tmp_path / "b.tar", change=change))


def test_a_tar_is_whole_to_its_last_byte(folder: Path, tmp_path: Path) -> None:
    whole = packed(folder, tmp_path / "b.tar").read_bytes()
    for name, data in {
        "cut": whole[: len(whole) // 2],
        "more": whole + b"x",
        "empty": b"",
        "noise": b"\x01" * 4096,
    }.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(Refused):
            verify(tmp_path / name)


def test_a_file_twice_in_a_tar_is_refused(folder: Path, tmp_path: Path) -> None:
    path = packed(folder, tmp_path / "b.tar")
    with tarfile.open(path, "a", format=tarfile.GNU_FORMAT) as archive:
        info = tarfile.TarInfo("edgerag-bundle/README.txt")
        archive.addfile(info, io.BytesIO())
    with pytest.raises(Refused, match=r"README\.txt is there twice"):
        verify(path)


@given(place=st.integers(0, 2**20), bit=st.integers(0, 7))
def test_no_flipped_bit_of_a_tar_is_overlooked(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, place: int, bit: int
) -> None:
    home = tmp_path_factory.getbasetemp()
    if not (home / "whole.tar").exists():
        packed(folder, home / "whole.tar")
    data = bytearray((home / "whole.tar").read_bytes())
    data[place % len(data)] ^= 1 << bit
    (home / "flipped.tar").write_bytes(data)
    with pytest.raises(Refused):
        verify(home / "flipped.tar")


def test_no_changed_byte_of_an_unsigned_manifest_is_overlooked(folder: Path) -> None:
    text = (folder / "manifest.json").read_bytes()
    manifest.read(text, "b")
    for place in range(len(text)):
        flipped = bytearray(text)
        flipped[place] ^= 1 << place % 8
        with pytest.raises(Refused):
            manifest.read(bytes(flipped), "b")
    for other in (text + b"\n", text[:-1], b" " + text, text.replace(b"\n", b"\r\n"), text.replace(b'"m"', b'"n"')):
        with pytest.raises(Refused):
            manifest.read(other, "b")


def test_the_digest_can_be_compared_without_edgerag(folder: Path) -> None:
    """As docs/bundle.md tells it: of all lines but the last two."""
    lines = (folder / "manifest.json").read_bytes().splitlines(keepends=True)
    digest = hashlib.sha256(b"".join(lines[:-2])).hexdigest()
    assert json.loads((folder / "manifest.json").read_bytes())["sha256"] == digest


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a//b", "a/./b", ".hidden", "a/.b", "a\\b", "a\nb", "a\0b", "C:x", "ä", "a b", "x.",
             "", "a/b/c/d/e/f", "y" * 201, "manifest.json", "Manifest.JSON", "manifest.json.minisig",
             "wheels", "packs", "-x"],
)  # fmt: skip
def test_hostile_names_in_a_manifest_are_refused(name: str) -> None:
    more = {"name": name, "size_bytes": 1, "sha256": ZEROS}
    for change in ({"files": [*SMALL["files"], more]}, {"packs": [{**PACK, "wheels": [WHEEL, more]}]}):
        with pytest.raises(Refused, match=r"its manifest\.json cannot be used"):
            manifest.read(manifest.with_digest({**SMALL, **change}), "b")


@pytest.mark.parametrize(
    "change",
    [
        {"pip": "wheels/other.whl"},
        {"pip": "../pip.whl"},
        {"version": -1},
        {"version": "1"},
        {"format": "else"},
        {"files": [*SMALL["files"], {"name": "WHEELS/pip-1-py3-none-any.whl", "size_bytes": 0, "sha256": ZEROS}]},
        {"files": [*SMALL["files"], WHEEL]},
        {"files": []},
        {"packs": []},
        {"packs": [PACK, PACK]},
        {"packs": [{**PACK, "file": "packs/other.xz"}]},
        {"packs": [{**PACK, "file": "wheels/pip-1-py3-none-any.whl"}]},
        {"packs": [{**PACK, "wheels": [WHEEL, {**WHEEL, "name": "packs/x.whl"}]}]},
        {"packs": [{**PACK, "wheels": [WHEEL, {**WHEEL, "name": "wheels/x.py"}]}]},
        {"packs": [{**PACK, "wheels": [{**WHEEL, "size_bytes": -1}]}]},
        {"packs": [{**PACK, "wheels": [{**WHEEL, "sha256": "0"}]}]},
        {"files": [{**SMALL["files"][0], "size_bytes": -1}]},
        {"files": [{**SMALL["files"][0], "sha256": "0"}]},
        {"files": {}},
        {"models": [{"name": "../m", "file": "wheels/pip-1-py3-none-any.whl", "shipped": True}]},
        {"libraries": [{"name": "x", "file": "wheels/pip-1-py3-none-any.whl"}]},
        {"targets": [{"platform": "\x1b[2J", "python": "3.11", "glibc": "2.5", "unpacked_bytes": 0, "wheels": []}]},
        {"targets": [{"platform": "linux-x", "python": "3.11", "glibc": "2", "unpacked_bytes": 0, "wheels": []}]},
    ],
)
def test_what_is_no_manifest_is_refused(change: dict[str, Any]) -> None:
    manifest.read(manifest.with_digest(SMALL), "b")
    with pytest.raises(Refused):
        manifest.read(manifest.with_digest({**SMALL, **change}), "b")


@given(
    st.binary(max_size=300)
    | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(lambda x: json.dumps(x).encode())
)
def test_noise_is_no_manifest(data: bytes) -> None:
    with pytest.raises(Refused):
        manifest.read(data, "b")


def test_a_later_version_says_what_reads_it() -> None:
    with pytest.raises(Refused, match=r"versions up to 3.*install\.py"):
        manifest.read(manifest.with_digest({**SMALL, "version": 4}), "b")


def test_a_bundle_of_before_there_were_packs_is_read() -> None:
    found = manifest.read(manifest.with_digest(OLD), "b")
    assert [file.name for file in found.files] == [found.pip]
    assert found.packs == ()
    with pytest.raises(Refused, match="named and not listed"):
        manifest.read(manifest.with_digest({**SMALL, "version": 2}), "b")


def test_an_earlier_version_without_a_digest_says_what_reads_it() -> None:
    with pytest.raises(Refused, match=r"has no digest.*install\.py"):
        manifest.read(json.dumps({**SMALL, "version": 1}).encode(), "b")


def test_a_signature_holds_the_manifest_and_so_every_file(tmp_path: Path) -> None:
    key = keys.make_key(tmp_path / "key")
    public = script.read_key(keys.public_path(tmp_path / "key"))
    craft.bundle(tmp_path / "b", tmp_path, key=key)
    assert key.name in script.verdict(verify(tmp_path / "b", public))
    assert "It says that it is signed" in script.verdict(verify(tmp_path / "b"))
    text = (tmp_path / "b" / "manifest.json").read_bytes()
    (tmp_path / "b" / "manifest.json").write_bytes(text.replace(b'"m"', b'"n"'))
    with pytest.raises(Refused, match="not what the owner of the key"):
        verify(tmp_path / "b", public)
    (tmp_path / "b" / "manifest.json").write_bytes(text)
    (tmp_path / "b" / "manifest.json.minisig").unlink()
    with pytest.raises(Refused, match="is not signed"):
        verify(tmp_path / "b", public)


def test_what_is_not_there_or_no_bundle_is_said(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="There is no"):
        verify(tmp_path / "nothing")
    with pytest.raises(Refused, match=r"There is no .*manifest\.json"):
        verify(tmp_path)
