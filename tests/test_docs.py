"""The documents say what the program does."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgerag.config import Settings
from edgerag.ui.cli import build_parser

CHECKOUT = Path(__file__).parent.parent
CLI = (CHECKOUT / "docs" / "cli.md").read_text(encoding="utf-8")
PROSE = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]


def commands(parser: argparse.ArgumentParser, name: str = "edgerag") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                yield from commands(child, f"{name} {word}")


ALL_COMMANDS = dict(commands(build_parser()))


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_every_command_and_option_is_in_cli_md(name: str) -> None:
    parent, _, word = name.rpartition(" ")
    assert f"`{name}" in CLI or (parent == "edgerag models" and f"| `{word}" in CLI), name
    for action in ALL_COMMANDS[name]._actions:
        for option in action.option_strings:
            if option != "-h":
                assert f"`{option}" in CLI, f"{name} {option}"


def test_every_option_in_cli_md_exists() -> None:
    real = {o for parser in ALL_COMMANDS.values() for action in parser._actions for o in action.option_strings}
    assert set(re.findall(r"`(--[a-z-]+)", CLI)) <= real


def test_every_setting_is_in_cli_md_with_its_default() -> None:
    documented = set(re.findall(r"`([a-z]+\.[a-z_]+)`", CLI.partition("| setting |")[2]))
    real = {
        f"{section.name}.{key.name}"
        for section in dataclasses.fields(Settings)
        for key in dataclasses.fields(getattr(Settings(), section.name))
    }
    assert documented == real
    for line in CLI.partition("## Settings")[2].splitlines():
        match = re.match(r"\| `([a-z]+)\.([a-z_]+)` \| (\d[\d.]*) \|", line)
        if match:
            assert getattr(getattr(Settings(), match[1]), match[2]) == float(match[3]), line


@pytest.mark.parametrize("document", PROSE, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("document", PROSE, ids=lambda path: path.name)
def test_commands_shown_in_the_documents_parse(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for block in re.findall(r"```(?:sh|console)?\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            words = line.strip().removeprefix("$ ").split("#")[0].split()
            if words[:1] == ["edgerag"] and len(words) > 1 and not words[1].startswith("-"):
                assert f"edgerag {words[1]}" in ALL_COMMANDS, line


def test_every_make_target_named_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in PROSE:
        for target in re.findall(r"`make ([a-z-]+)", document.read_text(encoding="utf-8")):
            assert target in targets, f"{document.name}: make {target}"


def test_the_table_of_settings_is_what_the_program_says_of_them() -> None:
    spec = importlib.util.spec_from_file_location("settings_table", CHECKOUT / "tools" / "settings_table.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.settings_table() in CLI, "run tools/settings_table.py"


def test_the_tuning_guide_is_what_the_doctor_suggests() -> None:
    spec = importlib.util.spec_from_file_location("tuning_table", CHECKOUT / "tools" / "tuning_table.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = (CHECKOUT / "docs" / "tuning.md").read_text(encoding="utf-8")
    assert tool.tuning_table() in page, "run tools/tuning_table.py"


def test_every_test_that_security_md_names_exists() -> None:
    page = (CHECKOUT / "docs" / "security.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page)
    assert len(named) > 30
    for file, test in named:
        source = (CHECKOUT / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in source, f"{file}::{test}"
    for row in re.findall(r"^\| (?!promise|---|\|)([^|]+) \| ([^|]+) \|$", page, re.MULTILINE):
        assert "`tests/" in row[1], f"no test shows: {row[0]}"
