from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgerag.threads.store import ThreadStore

sys.path.insert(0, str(Path(__file__).parent))  # for `from conversations import ...`


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "home" / "threads.sqlite"


@pytest.fixture
def store(file: Path) -> Iterator[ThreadStore]:
    made = ThreadStore(file)
    yield made
    made.close()
