from __future__ import annotations

from pathlib import Path

import pytest

from edgerag.config import Share, load_settings, parse_budget, parse_size
from edgerag.errors import UsageError


def write(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_defaults_without_a_file(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "absent.toml", {}, {})
    assert settings.library.name == "default"
    assert settings.memory.budget == 256_000_000


def test_flags_beat_environment_beats_file_beats_defaults(tmp_path: Path) -> None:
    file = write(tmp_path, "[retrieval]\nsource_count = 5\ncandidate_count = 50\nef_search = 90\n")
    environ = {"EDGERAG_RETRIEVAL_SOURCE_COUNT": "6", "EDGERAG_RETRIEVAL_CANDIDATE_COUNT": "60", "HOME": "/x"}
    settings = load_settings(file, environ, {"retrieval": {"source_count": 7}})
    assert settings.retrieval.source_count == 7
    assert settings.retrieval.candidate_count == 60
    assert settings.retrieval.ef_search == 90
    assert settings.retrieval.rrf_k == 60


def test_home_variable_is_not_a_setting(tmp_path: Path) -> None:
    load_settings(tmp_path / "absent.toml", {"EDGERAG_HOME": "/somewhere"}, {})


def test_a_password_is_never_part_of_the_settings(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "absent.toml", {"EDGERAG_PASSWORD": "hunter2"}, {})
    assert "hunter2" not in repr(settings)


def test_ocr_is_chosen_by_name(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "absent.toml", {"EDGERAG_INGEST_OCR": "force"}, {}).ingest.ocr == "force"
    with pytest.raises(UsageError, match=r"ingest\.ocr .*'auto', 'off', 'force'"):
        load_settings(tmp_path / "absent.toml", {}, {"ingest": {"ocr": "on"}})


def test_switches_and_lists(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[ingest]\nhidden = true\ninclude = ["*.md", "a, b"]\nexclude = ["x"]\n')
    environment = {"EDGERAG_INGEST_HIDDEN": "off", "EDGERAG_INGEST_EXCLUDE": "*.tmp, build/,"}
    ingest = load_settings(file, environment, {}).ingest
    assert (ingest.hidden, ingest.include, ingest.exclude) == (False, ("*.md", "a, b"), ("*.tmp", "build/"))
    assert load_settings(file, {}, {"ingest": {"include": ["*.txt"], "polite": True}}).ingest.include == ("*.txt",)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[retrieval]\nsources = 5\n", ["retrieval.sources", "config.toml", "source_count"]),
        ("[retreival]\nsource_count = 5\n", ["retreival", "config.toml", "retrieval"]),
        ("[retrieval]\nsource_count = 0\n", ["retrieval.source_count", "0", "between"]),
        ("[retrieval]\nsource_count = 2.5\n", ["retrieval.source_count", "2.5"]),
        ("[retrieval]\nsource_count = true\n", ["retrieval.source_count", "True"]),
        ("[retrieval]\nsource_count = [1]\n", ["retrieval.source_count"]),
        ("[generation]\ntemperature = nan\n", ["generation.temperature", "nan"]),
        ("[generation]\nseed = 'x'\n", ["generation.seed", "x"]),
        ("[memory]\nbudget = 'much'\n", ["memory.budget", "much"]),
        ("[memory]\nbudget = '0%'\n", ["memory.budget", "0%"]),
        ("[memory]\nbudget = '101 %'\n", ["memory.budget", "101 %", "100%"]),
        ("[memory]\nbudget = '-5%'\n", ["memory.budget", "-5%"]),
        ("[memory]\nbudget = '10%%'\n", ["memory.budget", "10%%"]),
        ("[memory]\nbudget = 0.1\n", ["memory.budget", "0.1", "between"]),
        ("[memory]\nbudget = true\n", ["memory.budget"]),
        ("[ingest]\nmax_file_size = '10%'\n", ["ingest.max_file_size", "10%"]),
        (f"[memory]\nbudget = '{'9' * 400}'\n", ["memory.budget", "too large"]),
        (f"[ingest]\nmax_file_size = {'9' * 400}\n", ["ingest.max_file_size", "too large"]),
        (f"[retrieval]\nef_search = {'9' * 400}\n", ["retrieval.ef_search", "too large"]),
        (f"[retrieval]\nef_search = {'9' * 5000}\n", ["config.toml"]),
        (f"x = {'[' * 5000}\n", ["config.toml"]),
        ("[library]\nname = 3\n", ["library.name", "3"]),
        ("[library]\nvectors = 'f64'\n", ["library.vectors", "'f64'", "'f16', 'f32'"]),
        ("[library]\nvectors = 32\n", ["library.vectors", "32"]),
        ("[ingest]\nhidden = 'perhaps'\n", ["ingest.hidden", "'perhaps'", "true or false"]),
        ("[ingest]\nhidden = 1\n", ["ingest.hidden", "1"]),
        ("[ingest]\ninclude = [1]\n", ["ingest.include", "list of texts"]),
        ("[ingest]\nmax_cpu = 0\n", ["ingest.max_cpu", "0", "between"]),
        ("library = 'x'\n", ["library", "keys"]),
        ("[retrieval\n", ["config.toml"]),
    ],
)
def test_what_is_wrong_is_refused_by_name(tmp_path: Path, text: str, names: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings(write(tmp_path, text), {}, {})
    for name in names:
        assert name in str(caught.value)


def test_a_mark_of_the_byte_order_before_the_settings_is_none_of_them(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xef\xbb\xbf[retrieval]\nsource_count = 3\n")
    assert load_settings(file, {}, {}).retrieval.source_count == 3


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xff\xfe\x00bad")
    with pytest.raises(UsageError, match=r"config\.toml"):
        load_settings(file, {}, {})


def test_unknown_variable_is_refused_by_its_name() -> None:
    with pytest.raises(UsageError, match="EDGERAG_RETRIEVAL_SOURCES"):
        load_settings(Path("absent.toml"), {"EDGERAG_RETRIEVAL_SOURCES": "3"}, {})


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("4096", 4096), ("512 MB", 512_000_000), ("1.5GiB", 1_610_612_736), ("2k", 2000), ("1 TiB", 2**40), ("7B", 7)],
)
def test_sizes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


def test_the_budget_is_a_size_or_a_share_of_the_free_memory(tmp_path: Path) -> None:
    absolute = load_settings(write(tmp_path, "[memory]\nbudget = '64 MB'\n"), {}, {}).memory
    assert absolute.budget == absolute.budget_bytes(10**12) == absolute.budget_bytes(0) == 64_000_000
    share = load_settings(tmp_path / "absent.toml", {"EDGERAG_MEMORY_BUDGET": " 12.5 % "}, {}).memory
    assert share.budget == parse_budget("12.5%") == Share(12.5)
    assert share.budget_bytes(8_000_000_000) == 1_000_000_000
    assert share.budget_bytes(0) == 1_000_000, "never less than the least that can be set"


@pytest.mark.parametrize("text", ["", "MB", "-1", "1 XB", "1e9", "٣"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)
