"""Documents that mean harm are read, named and shown, and change nothing: no prompt, setting, file or screen."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hostile.documents import Hostile, all_documents

from edgerag.engine.catalog import Catalog
from edgerag.engine.generator import open_generator, plain_settings
from edgerag.types import Message
from edgerag.ui.cli import main

DOCUMENTS = all_documents()
# What no screen may be sent: escapes and controls, overrides and isolates of direction.
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
CALLS = "socket,connect,bind,sendto"


@dataclass(frozen=True, slots=True)
class Ingested:
    home: Path
    folder: Path
    reports: dict[str, dict[str, object]]  # by the beginning of a file's name
    screen: str  # what the commands wrote
    code: int
    calls: str | None  # system calls; None where they could not be watched
    before: dict[str, str]


def tree(*folders: Path) -> dict[str, str]:
    """Every file with its checksum."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Ingested:
    base = tmp_path_factory.mktemp("hostile")
    home, folder, outside = base / "home", base / "docs", base / "outside"
    for each in (home, folder, outside):
        each.mkdir()
    (home / "models").symlink_to(models_folder)
    (home / "config.toml").write_text("[retrieval]\nsource_count = 5\n")
    (outside / "canary.txt").write_text("untouched")
    for document in DOCUMENTS:
        (folder / document.name).write_bytes(document.data)
    before = tree(folder, outside) | tree_of_settings(home)
    environ = {**os.environ, "EDGERAG_HOME": str(home), "EDGERAG_RETRIEVAL_VECTOR_DEADLINE_MS": "0", "TERM": "xterm"}
    log, report = base / "calls.log", base / "report.json"
    command = [sys.executable, "-m", "edgerag", "ingest", str(folder), "--report", str(report), "--eager"]
    watch = ["strace", "-f", "-qq", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(log)]
    can_watch = (
        shutil.which("strace") and not subprocess.run([*watch, "true"], capture_output=True, check=False).returncode
    )
    done = subprocess.run(
        [*(watch if can_watch else []), *command],
        env=environ,
        capture_output=True,
        timeout=900,
        cwd=outside,
        check=False,
    )
    screen = done.stdout + done.stderr
    for arguments in (
        ["status", "--files"],
        ["search", "pump of station north basin", "-n", "50"],
        ["search", "ignore instructions BANANA", "-n", "50"],
        ["ask", "--no-llm", "--why", "What colour is the pump of the station?"],
    ):
        shown = subprocess.run(
            [sys.executable, "-m", "edgerag", *arguments],
            env=environ,
            capture_output=True,
            timeout=300,
            cwd=outside,
            check=False,
        )
        screen += shown.stdout + shown.stderr
    record = json.loads(report.read_text(encoding="utf-8"))
    reports: dict[str, dict[str, object]] = {}
    for entry in record["files"]:
        number = re.match(r"(\d{3})-", Path(str(entry["path"])[len(str(folder)) + 1 :]).parts[0])
        assert number is not None, entry
        known = reports.setdefault(number[1], {"told": "", "states": []})
        known["told"] = f"{known['told']} {entry.get('reason', '')} {' '.join(entry.get('warnings', []))}"
        known["states"] = [*known["states"], entry["state"]]  # type: ignore[misc]
    calls = log.read_text() if can_watch else None
    return Ingested(home, folder, reports, screen.decode("utf-8", "replace"), done.returncode, calls, before)


def tree_of_settings(home: Path) -> dict[str, str]:
    return {str(home / "config.toml"): hashlib.sha256((home / "config.toml").read_bytes()).hexdigest()}


def test_there_are_at_least_eighty() -> None:
    assert len(DOCUMENTS) >= 80


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: ascii(document.name[:24]))
def test_each_is_in_the_report_with_what_was_neutralised(ingested: Ingested, document: Hostile) -> None:
    report = ingested.reports.get(document.name[:3])
    assert report is not None, "every file is told of"
    assert document.told == "" or re.search(document.told, str(report["told"])), report["told"]


def test_one_bad_file_stops_nothing(ingested: Ingested) -> None:
    assert ingested.code in (0, 1)
    states = {state for report in ingested.reports.values() for state in report["states"]}  # type: ignore[attr-defined]
    assert states <= {"ingested", "skipped", "failed", "unchanged"}


def test_no_file_and_no_setting_is_changed(ingested: Ingested) -> None:
    outside = ingested.folder.parent / "outside"
    assert tree(ingested.folder, outside) | tree_of_settings(ingested.home) == ingested.before
    assert not list(Path("/tmp").glob("edgerag-was-here*"))
    own = {"models", "config.toml", "indexes", "threads.sqlite", "traces.sqlite"}
    left = {path.name.removesuffix("-wal").removesuffix("-shm") for path in ingested.home.iterdir()}
    assert left <= own


def test_nothing_reaches_the_terminal_but_text(ingested: Ingested) -> None:
    found = DANGEROUS.search(ingested.screen)
    assert found is None, ascii(ingested.screen[max(0, found.start() - 80) : found.end() + 20])


def test_no_file_of_the_machine_came_in(
    ingested: Ingested, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGERAG_HOME", str(ingested.home))
    assert main(["search", "root daemon nologin bin bash", "-n", "20", "--json"]) in (0, 1)
    assert "root:x:0" not in capsys.readouterr().out


def test_no_network_is_tried(ingested: Ingested) -> None:
    if ingested.calls is None:
        pytest.skip("needs strace: the audit hook and the kernel refuse, and are tested elsewhere")
    assert not [line for line in ingested.calls.splitlines() if "AF_INET" in line or "connect(" in line]


def test_no_document_changes_the_structure_of_a_prompt(ingested: Ingested, catalog: Catalog) -> None:
    """What the library gives of each, put where sources stand: as many control tokens as with harmless text."""
    from edgerag.index.hnsw.residency import Residency
    from edgerag.index.library import open_library

    generator = open_generator(
        catalog.find("chat", "smollm2-135m-instruct"), plain_settings(context_tokens=4096, threads=2)
    )
    try:

        def control_count(text: str) -> int:
            messages = [Message("system", ("Be brief.",)), Message("user", ("Sources: ", text, "\nQuestion: what?"))]
            tokens = generator.encode_chat(messages).tokens
            return sum(generator._model.token_kind(token) == "control" for token in tokens)

        harmless = control_count("harmless")
        with open_library(ingested.home / "indexes" / "default", mode="read", residency=Residency(10**8)) as library:
            for document in library.documents():
                text = library.parsed_document(document.id).text[:6_000]
                assert control_count(f"{document.path}\n{document.title}\n{text}") == harmless, document.path
    finally:
        generator.close()
