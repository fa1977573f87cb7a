"""The real models, loaded once for all tests of the engine."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `from gguf_files import ...`

from edgerag.engine.catalog import Catalog
from edgerag.engine.embedder import LlamaEmbedder, open_embedder
from edgerag.engine.generator import LlamaGenerator, open_generator, plain_settings


@pytest.fixture(scope="session")
def generator(catalog: Catalog) -> Iterator[LlamaGenerator]:
    opened = open_generator(
        catalog.find("chat", "smollm2-135m-instruct"), plain_settings(context_tokens=1024, threads=1)
    )
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def embedder(catalog: Catalog) -> Iterator[LlamaEmbedder]:
    opened = open_embedder(catalog.find("embedder", "all-minilm-l6-v2"), threads=1)
    yield opened
    opened.close()


@pytest.fixture
def own_catalog(tmp_path: Path, models_folder: Path) -> Catalog:
    """A catalogue of the test's own, empty, with the project's manifest."""
    folder = tmp_path / "models"
    folder.mkdir()
    shutil.copy(models_folder / "manifest.toml", folder)
    return Catalog(folder, folder / "manifest.toml")
