"""What all tests share: the real models of this checkout, and homes of their own."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # for `from fakes import ...`

if TYPE_CHECKING:
    from edgerag.engine.catalog import Catalog

# How long an example takes depends on what else the machine does: no test asserts a time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

CHECKOUT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def models_folder() -> Path:
    """The folder with the real small models, provided by ``make models``."""
    return CHECKOUT / "models"


@pytest.fixture(scope="session")
def catalog(models_folder: Path) -> Catalog:
    from edgerag.engine.catalog import Catalog

    return Catalog(models_folder, models_folder / "manifest.toml")


@pytest.fixture(scope="session")
def tiny_chat_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chat model of random weights, in Q4_0: for what has neither speed nor sense."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(CHECKOUT / "bench"))
        path: Path = import_module("random_model").write_model(tmp_path_factory.mktemp("tiny"), size="tiny")
    return path


@pytest.fixture(autouse=True)
def no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found does not depend on how busy the machine is that runs the tests."""
    monkeypatch.setenv("EDGERAG_RETRIEVAL_VECTOR_DEADLINE_MS", "0")


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run beside each other on all cores: of several threads of a model each would wait, at full speed, for the
    one that has no core."""
    monkeypatch.setenv("EDGERAG_MACHINE_THREADS", "1")


@pytest.fixture
def home(tmp_path: Path, models_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home that has the real models."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "models").symlink_to(models_folder)
    for variable in ("NO_COLOR", "EDGERAG_LIBRARY_NAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("EDGERAG_HOME", str(folder))
    return folder
