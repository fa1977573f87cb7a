"""Where each value comes from."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgerag.config import Settings, parse_size
from edgerag.errors import UsageError
from edgerag.settings.effective import RELOADING, SettingsSources, all_settings, find_setting, size_text
from edgerag.settings.meanings import MEANINGS


def origins(sources: SettingsSources) -> dict[str, tuple[str, str]]:
    return {one.setting.name: (one.text, one.origin) for one in sources.effective()}


def test_each_value_has_its_origin(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[retrieval]\nsource_count = 5\nef_search = 90\nrrf_k = 50\n[memory]\nbudget = "10%"\n')
    environ = {"EDGERAG_RETRIEVAL_EF_SEARCH": "100", "EDGERAG_RETRIEVAL_RRF_K": "70", "HOME": "/x"}
    found = origins(SettingsSources(file, environ, {"retrieval": {"rrf_k": 80}}))
    assert found["retrieval.source_count"] == ("5", "file")
    assert found["retrieval.ef_search"] == ("100", "environment")
    assert found["retrieval.rrf_k"] == ("80", "flag")
    assert found["retrieval.candidate_count"] == ("40", "default")
    assert found["memory.budget"] == ("10%", "file")
    assert found["generation.temperature"] == ("", "default")


def test_the_variable_is_named(tmp_path: Path) -> None:
    sources = SettingsSources(tmp_path / "config.toml", {"EDGERAG_INGEST_HIDDEN": "yes"})
    found = sources.find("ingest.hidden")
    assert (found.value, found.where, found.in_file) == (True, "EDGERAG_INGEST_HIDDEN", False)


def test_no_color_is_a_theme_below_our_own_variable(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert SettingsSources(file, {"NO_COLOR": "1"}).find("ui.theme").value == "no-colour"
    assert SettingsSources(file, {"NO_COLOR": ""}).find("ui.theme").value == "dark"
    both = {"EDGERAG_UI_THEME": "light", "NO_COLOR": "1"}
    assert SettingsSources(file, both).find("ui.theme").where == "EDGERAG_UI_THEME"


def test_every_setting_has_a_meaning_and_every_meaning_a_setting() -> None:
    real = {
        f"{section.name}.{key.name}"
        for section in dataclasses.fields(Settings)
        for key in dataclasses.fields(getattr(Settings(), section.name))
    }
    assert set(MEANINGS) == real == {setting.name for setting in all_settings()}
    assert real >= RELOADING


def test_an_unknown_name_is_told_its_neighbours() -> None:
    with pytest.raises(UsageError, match=r"retrieval\.sources.*retrieval\.source_count"):
        find_setting("retrieval.sources")


@given(st.integers(0, 2**53))  # 9 PB: what a float holds exactly
def test_a_size_is_read_back_as_it_was(size_bytes: int) -> None:
    assert parse_size(size_text(size_bytes)) == size_bytes


def test_sizes_as_people_write_them() -> None:
    assert [size_text(n) for n in (256_000_000, 1_500_000_000, 4096, 0)] == ["256 MB", "1.5 GB", "4096", "0"]
