"""A folder where a file belongs, or the other way round, is named as that and not as a disk without room."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.index import golden_libraries as golden

from edgerag.errors import StorageFull


@pytest.mark.parametrize("name", ["writer.lock", "segments", "asking.lock"])
def test_what_stands_in_the_way_is_named(tmp_path: Path, name: str) -> None:
    folder = golden.unpack(tmp_path, golden.VERSIONS[-1])
    place = folder / name
    if name == "segments":
        place.rename(folder / "away")
        place.write_text("mine")
    else:
        place.mkdir()
    docs = tmp_path / "docs.txt"
    docs.write_text("Words.")
    with golden.session(tmp_path) as session, pytest.raises(StorageFull) as refused:
        list(session.ingest([docs]))
    assert name in refused.value.message and "in the place of" in refused.value.message
    assert "Move it away" in refused.value.remedy
