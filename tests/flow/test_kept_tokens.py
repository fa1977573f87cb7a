"""Tokens of chunks beside a library: there after a question, with the same answer, and gone with their document."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgerag.index.kv_names import document_hash

QUESTION = "What is the pressure of the Brandt boiler?"


def edgerag(*arguments: str, environ: dict[str, str]) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "edgerag", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environ,
        check=True,
    )
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def documents(file: Path) -> set[str]:
    with sqlite3.connect(file) as db:
        return {document for (document,) in db.execute("SELECT DISTINCT document FROM tokens")}


@pytest.fixture
def environ(tmp_path: Path, models_folder: Path) -> dict[str, str]:
    (tmp_path / "models").symlink_to(models_folder)
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, bar in (("boiler", 7), ("press", 120)):
        text = f"# The Brandt {name}\n\nThe pressure of the Brandt {name} is {bar} bar. It is read off the gauge.\n"
        (docs / f"{name}.md").write_text(text)
    return {**os.environ, "EDGERAG_HOME": str(tmp_path)}


@pytest.mark.long
def test_tokens_are_kept_used_and_go_with_their_document(tmp_path: Path, environ: dict[str, str]) -> None:
    docs, file = tmp_path / "docs", tmp_path / "indexes" / "default" / "kv" / "tokens.sqlite"
    edgerag("ingest", str(docs), environ=environ)
    first = edgerag("ask", "--json", QUESTION, environ=environ)
    boiler, press = (f"doc-{document_hash(str(docs / name))}" for name in ("boiler.md", "press.md"))
    assert boiler in documents(file)
    again = edgerag("ask", "--json", QUESTION, environ=environ)
    assert (again["answer"], again["tokens"]) == (first["answer"], first["tokens"])
    edgerag("remove", str(docs / "boiler.md"), environ=environ)
    assert boiler not in documents(file) and documents(file) <= {press}
    (docs / "press.md").write_text("# The Brandt press\n\nThe pressure of the Brandt press is 90 bar now.\n")
    edgerag("ingest", str(docs / "press.md"), environ=environ)
    assert documents(file) == set(), "and with a text that was edited"
