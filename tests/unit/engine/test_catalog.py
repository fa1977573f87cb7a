"""The catalogue: what is here, what is refused by name, and what is remembered."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
from pathlib import Path

import pytest
from gguf_files import CHAT, gguf_bytes, write

from edgerag.engine import catalog as catalog_module
from edgerag.engine.catalog import Catalog
from edgerag.engine.state import change_state, read_state
from edgerag.errors import ModelDamaged, ModelError, ModelMissing, ModelWrongKind, StorageFull, UsageError


@pytest.fixture(scope="session")
def embedder_file(catalog: Catalog) -> Path:
    return catalog.find("embedder", "all-minilm-l6-v2").path


def test_the_defaults_are_found_without_a_name(catalog: Catalog) -> None:
    chat, embedder = catalog.find("chat"), catalog.find("embedder")
    assert (chat.name, chat.kind, chat.licence) == ("smollm2-135m-instruct", "chat", "apache-2.0")
    assert (embedder.name, embedder.kind, embedder.dimension) == ("all-minilm-l6-v2", "embedder", 384)
    manifest = catalog.manifest()
    assert chat.weights_sha256 == manifest[chat.name].sha256
    assert embedder.weights_sha256 == manifest[embedder.name].sha256


def test_an_empty_folder_lists_the_manifest_as_missing(own_catalog: Catalog) -> None:
    assert {entry.name: entry.state for entry in own_catalog.entries()} == {
        "smollm2-135m-instruct": "missing",
        "all-minilm-l6-v2": "missing",
        "multilingual-e5-small": "missing",
    }
    with pytest.raises(ModelMissing, match="no chat model on this machine") as caught:
        own_catalog.find("chat")
    assert "models pull" in caught.value.remedy
    with pytest.raises(ModelMissing, match="smollm2-135m-instruct"):
        own_catalog.find("chat", "smollm2-135m-instruct")


def test_an_unknown_name_is_missing_and_the_known_ones_are_told(own_catalog: Catalog) -> None:
    with pytest.raises(ModelMissing, match="no model 'llama-70b'") as caught:
        own_catalog.find("chat", "llama-70b")
    assert "smollm2-135m-instruct" in caught.value.remedy


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", "0 bytes"), (b"MZ" + bytes(100), "not a GGUF"), (gguf_bytes(dict(CHAT))[:-8], "must have")],
)
def test_a_damaged_file_is_named_by_find_list_add_and_verify(own_catalog: Catalog, content: bytes, what: str) -> None:
    file = write(own_catalog.folder / "smollm2-135m-instruct.gguf", content)
    with pytest.raises(ModelDamaged, match=what):
        own_catalog.find("chat")
    entry = next(entry for entry in own_catalog.entries() if entry.name == "smollm2-135m-instruct")
    assert entry.state == "damaged"
    assert what in entry.detail
    with pytest.raises(ModelDamaged, match=what):
        own_catalog.find("chat", str(file))
    with pytest.raises(ModelDamaged, match=what):
        own_catalog.add(file, name="copy")
    finding = next(f for f in own_catalog.verify() if f.name == "smollm2-135m-instruct")
    assert finding.severity == "error"
    assert what in finding.message


def test_the_wrong_kind_is_refused_by_name(catalog: Catalog, embedder_file: Path) -> None:
    with pytest.raises(ModelWrongKind, match="all-minilm-l6-v2 is an embedder"):
        catalog.find("chat", "all-minilm-l6-v2")
    with pytest.raises(ModelWrongKind, match="smollm2-135m-instruct is a chat model"):
        catalog.find("embedder", "smollm2-135m-instruct")
    with pytest.raises(ModelWrongKind, match="is an embedder"):
        catalog.find("chat", str(embedder_file))


def test_a_file_that_llama_cpp_refuses_becomes_a_sentence_and_is_remembered(
    own_catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "hollow.gguf", gguf_bytes(dict(CHAT)))  # a header in order, and no model behind it
    with pytest.raises(ModelDamaged, match=r"llama\.cpp cannot load .*hollow\.gguf"):
        own_catalog.find("chat", str(file))
    monkeypatch.setattr(catalog_module, "probe", _never_called)
    with pytest.raises(ModelDamaged, match=r"llama\.cpp cannot load"):
        own_catalog.find("chat", str(file))
    monkeypatch.undo()
    with pytest.raises(ModelDamaged, match=r"llama\.cpp cannot load"):
        own_catalog.add(file)
    assert not (own_catalog.folder / "hollow.gguf").exists()


def test_an_added_model_is_found_by_name_and_neither_hashed_nor_tried_again(
    own_catalog: Catalog, embedder_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = own_catalog.add(embedder_file, name="Mine")
    assert (added.name, added.path.parent) == ("mine", own_catalog.folder)
    monkeypatch.setattr(catalog_module, "probe", _never_called)
    monkeypatch.setattr(catalog_module, "sha256_of", _never_called)
    assert own_catalog.find("embedder", "mine") == added
    assert own_catalog.find("embedder") == added  # the first one ready, as the default is not here
    entry = next(entry for entry in own_catalog.entries() if entry.name == "mine")
    assert (entry.state, entry.kind, entry.licence) == ("ready", "embedder", "Apache-2.0")


def test_adding_twice_changes_nothing_and_another_content_needs_another_name(
    own_catalog: Catalog, embedder_file: Path, catalog: Catalog
) -> None:
    added = own_catalog.add(embedder_file, name="mine")
    assert own_catalog.add(embedder_file, name="mine") == added
    with pytest.raises(UsageError, match="already another model called 'mine'"):
        own_catalog.add(catalog.find("chat").path, name="mine")


def test_a_changed_file_is_not_the_model_that_was_added(own_catalog: Catalog, embedder_file: Path) -> None:
    added = own_catalog.add(embedder_file, name="mine")
    content = bytearray(added.path.read_bytes())
    content[-1] ^= 0xFF
    added.path.write_bytes(content)
    with pytest.raises(ModelDamaged, match="not the file it was"):
        own_catalog.find("embedder", "mine")
    finding = next(f for f in own_catalog.verify(["mine"]))
    assert finding.severity == "error"


def test_a_touched_file_is_the_same_model(own_catalog: Catalog, embedder_file: Path) -> None:
    added = own_catalog.add(embedder_file, name="mine")
    added.path.touch()
    assert own_catalog.find("embedder", "mine").sha256 == added.sha256
    assert [finding.severity for finding in own_catalog.verify(["mine"])] == ["ok"]


def test_another_model_under_a_manifest_name_is_refused(own_catalog: Catalog, catalog: Catalog) -> None:
    shutil.copy(catalog.find("chat").path, own_catalog.folder / "all-minilm-l6-v2.gguf")
    with pytest.raises(ModelWrongKind):
        own_catalog.find("embedder", "all-minilm-l6-v2")
    finding = next(f for f in own_catalog.verify(["all-minilm-l6-v2"]))
    assert finding.severity == "error"
    assert "the manifest says" in finding.message


def test_a_lost_or_garbled_state_is_found_out_again(own_catalog: Catalog, embedder_file: Path) -> None:
    shutil.copy(embedder_file, own_catalog.folder / "all-minilm-l6-v2.gguf")
    found = own_catalog.find("embedder")
    (own_catalog.folder / "state.json").write_text("{ not json")
    assert own_catalog.find("embedder") == found


@pytest.mark.parametrize("keep", [0, 40, -10])
def test_a_truncated_state_loses_no_added_model(own_catalog: Catalog, embedder_file: Path, keep: int) -> None:
    added = own_catalog.add(embedder_file, name="mine")
    shutil.copy(embedder_file, own_catalog.folder / "all-minilm-l6-v2.gguf")  # the manifest's: not an added one
    (own_catalog.folder / ".half.gguf").touch()
    state = own_catalog.folder / "state.json"
    damaged = state.read_bytes()[:keep]
    state.write_bytes(damaged)
    fresh = Catalog(own_catalog.folder, own_catalog.folder / "manifest.toml")
    known = {entry.name: entry.state for entry in fresh.entries() if entry.name != "multilingual-e5-small"}
    assert known == {"smollm2-135m-instruct": "missing", "all-minilm-l6-v2": "ready", "mine": "ready"}
    assert [entry.kind for entry in fresh.entries() if entry.name == "mine"] == ["embedder"]
    assert fresh.find("embedder", "mine") == added  # and writes the state anew
    assert (own_catalog.folder / "state.json.damaged").read_bytes() == damaged
    assert set(read_state(own_catalog.folder).added) == {"mine"}
    fresh.add(embedder_file, name="another")
    assert {"mine", "another"} <= {entry.name for entry in own_catalog.entries()}


def test_a_state_of_another_version_is_kept_aside(own_catalog: Catalog, embedder_file: Path) -> None:
    own_catalog.add(embedder_file, name="mine")
    (own_catalog.folder / "state.json").write_text('{"version": 2}')
    own_catalog.add(embedder_file, name="another")
    assert (own_catalog.folder / "state.json.damaged").read_text() == '{"version": 2}'
    assert {"mine", "another"} <= {entry.name for entry in own_catalog.entries()}


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_a_state_that_cannot_be_read_is_named_and_not_replaced(
    own_catalog: Catalog, embedder_file: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    own_catalog.add(embedder_file, name="mine")
    before = (own_catalog.folder / "state.json").read_bytes()

    def refuse(path: Path) -> bytes:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        for attempt in (own_catalog.entries, lambda: own_catalog.find("embedder"), own_catalog.verify):
            with pytest.raises(ModelError, match=r"state\.json.*" + os.strerror(number)):
                attempt()
        with pytest.raises(ModelError, match=r"state\.json"):
            change_state(own_catalog.folder, lambda state: None)
    assert (own_catalog.folder / "state.json").read_bytes() == before


def test_where_no_state_can_be_kept_one_catalogue_looks_once(
    own_catalog: Catalog, embedder_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StorageFull("a read-only folder")

    file = own_catalog.folder / "all-minilm-l6-v2.gguf"
    shutil.copy(embedder_file, file)
    monkeypatch.setattr(catalog_module, "change_state", refuse)
    found = own_catalog.find("embedder")
    with monkeypatch.context() as patch:
        patch.setattr(catalog_module, "probe", _never_called)
        patch.setattr(catalog_module, "sha256_of", _never_called)
        assert own_catalog.find("embedder") == found
        assert own_catalog.find("embedder", "all-minilm-l6-v2") == found
        file.touch()
        with pytest.raises(AssertionError, match="done again"):  # another time: another file, perhaps
            own_catalog.find("embedder")


def test_a_path_is_a_model_name_too(own_catalog: Catalog, embedder_file: Path) -> None:
    found = own_catalog.find("embedder", str(embedder_file))
    assert found.path == embedder_file
    assert found.weights_sha256 == own_catalog.manifest()["all-minilm-l6-v2"].sha256
    with pytest.raises(ModelMissing):
        own_catalog.find("embedder", "/no/such/model.gguf")


def _add(folder: str, source: str, number: int) -> None:
    Catalog(Path(folder), Path(folder) / "manifest.toml").add(Path(source), name=f"model-{number}")


def test_processes_that_add_at_the_same_time_lose_nothing(own_catalog: Catalog, embedder_file: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers = [
        spawn.Process(target=_add, args=(str(own_catalog.folder), str(embedder_file), number)) for number in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert {"model-0", "model-1", "model-2"} <= {entry.name for entry in own_catalog.entries()}


def test_a_wrong_manifest_is_named(tmp_path: Path) -> None:
    file = tmp_path / "manifest.toml"
    file.write_text('[models.x]\nkind = "chat"\n')
    with pytest.raises(UsageError, match="wrong entry 'x'"):
        Catalog(tmp_path, file).entries()


def _never_called(*_: object) -> None:
    raise AssertionError("this must not be done again")
