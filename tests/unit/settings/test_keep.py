"""What a setting leaves of the file that it is written into."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from edgerag.config import load_settings
from edgerag.errors import StorageFull, UsageError
from edgerag.settings.effective import Setting, all_settings, find_setting, value_text
from edgerag.settings.keep import forget_setting, keep_setting

FILE = """# my settings
[retrieval]  # search
source_count = 5 # not more

[future]
unheard_of = [1, 2]

[generation]
answer_tokens = 300
"""


def test_everything_else_stays_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(FILE)
    keep_setting(file, find_setting("retrieval.source_count"), "7")
    assert file.read_text() == FILE.replace("= 5", "= 7")
    keep_setting(file, find_setting("memory.budget"), "512 MB")
    forget_setting(file, find_setting("generation.answer_tokens"))
    text = file.read_text()
    for kept in ("# my settings", "# search", "# not more", "unheard_of = [1, 2]"):
        assert kept in text
    assert tomllib.loads(text)["memory"] == {"budget": "512 MB"}
    assert "answer_tokens" not in text


@pytest.mark.parametrize(
    ("name", "typed", "held"),
    [
        ("memory.budget", "10 %", "10%"),
        ("ingest.max_file_size", "1.5 GB", "1.5 GB"),
        ("ingest.include", "*.md, *.pdf", ["*.md", "*.pdf"]),
        ("ingest.hidden", "yes", True),
        ("generation.temperature", "0.7", 0.7),
        ("generation.top_k", "40", 40),
        ("models.chat", "", ""),
    ],
)
def test_what_is_typed_is_what_the_program_reads(tmp_path: Path, name: str, typed: str, held: object) -> None:
    file = tmp_path / "new" / "config.toml"
    setting = find_setting(name)
    keep_setting(file, setting, typed)
    assert tomllib.loads(file.read_text())[setting.section][setting.key] == held
    load_settings(file, {}, {})


@pytest.mark.parametrize("setting", all_settings(), ids=lambda setting: setting.name)
def test_every_default_can_be_written_and_means_itself(tmp_path: Path, setting: Setting) -> None:
    file = tmp_path / "config.toml"
    keep_setting(file, setting, value_text(setting, setting.default))
    settings = load_settings(file, {}, {})
    assert getattr(getattr(settings, setting.section), setting.key) == setting.default


def test_nothing_typed_unsets_what_can_be_unset(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    temperature = find_setting("generation.temperature")
    keep_setting(file, temperature, "0.7")
    keep_setting(file, temperature, " ")
    assert load_settings(file, {}, {}).generation.temperature is None


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("retrieval.source_count", "99", "not between 1 and 50"),
        ("retrieval.source_count", "", "not a whole number"),
        ("memory.budget", "much", "not a size"),
        ("generation.mode", "magic", "'model', 'instant'"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(tmp_path: Path, name: str, typed: str, says: str) -> None:
    file = tmp_path / "config.toml"
    with pytest.raises(UsageError, match=says):
        keep_setting(file, find_setting(name), typed)
    assert not file.exists()


def test_a_file_that_is_no_toml_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[retrieval\n")
    with pytest.raises(UsageError, match=r"config\.toml cannot be read"):
        keep_setting(file, find_setting("retrieval.source_count"), "7")
    assert file.read_text() == "[retrieval\n"


def test_a_link_stays_a_link_and_rights_stay_rights(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "edgerag.toml"
    real.parent.mkdir()
    real.write_text(FILE)
    real.chmod(0o640)
    file = tmp_path / "config.toml"
    file.symlink_to(real)
    keep_setting(file, find_setting("retrieval.source_count"), "7")
    assert file.is_symlink()
    assert "= 7" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_folder_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises((StorageFull, UsageError)):
        keep_setting(tmp_path / "home" / "config.toml", find_setting("retrieval.source_count"), "7")


def test_line_ends_stay_what_they_are(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"[retrieval]\r\nsource_count = 5 # not more\r\n")
    keep_setting(file, find_setting("retrieval.source_count"), "7")
    assert file.read_bytes() == b"[retrieval]\r\nsource_count = 7 # not more\r\n"


@pytest.mark.parametrize("text", ['memory = "budget"', "memory = 5", 'memory = ["budget"]', "[[memory]]\nbudget = 1"])
def test_what_is_no_table_is_named_and_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    setting = find_setting("memory.budget")
    with pytest.raises(UsageError, match="'memory' as a value"):
        forget_setting(file, setting)
    with pytest.raises(UsageError, match="'memory' as a value"):
        keep_setting(file, setting, "1 GB")
    assert file.read_text() == text


@pytest.mark.parametrize("name", ["models.chat", "library.also", "library.name", "ui.theme", "memory.budget"])
def test_what_is_no_text_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="not valid UTF-8"):
        keep_setting(tmp_path / "config.toml", find_setting(name), "a\udcff")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("setting", [one for one in all_settings() if one.allowed.startswith(("text", "a list"))])
def test_no_name_holds_a_nul(tmp_path: Path, setting: Setting) -> None:
    file = tmp_path / "config.toml"
    value = '["a\\u0000/b"]' if isinstance(setting.default, tuple) else '"a\\u0000/b"'
    file.write_text(f"{setting.name} = {value}")
    with pytest.raises(UsageError, match=setting.key):
        load_settings(file, {}, {})
    with pytest.raises(UsageError, match=setting.key):
        keep_setting(tmp_path / "other.toml", setting, "a\0/b")
