"""A real bundle: made here, carried to where there is no network, installed there, and asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from unit.bundle import craft

from edgerag.bundle import keys
from edgerag.ui.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "docs"
QUESTION = "What is the noise level of the pump?"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "made").mkdir()
    craft.bundle(tmp_path / "bundle", tmp_path / "made", key=keys.make_key(tmp_path / "key"))
    return tmp_path / "bundle"


@pytest.mark.usefixtures("home")
def test_the_commands_verify_and_name_what_was_changed(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = ["--public-key", str(tmp_path / "key.pub")]
    assert main(["bundle", "verify", str(bundle)]) == 0
    assert "--public-key FILE compares that" in capsys.readouterr().err
    assert main(["bundle", "verify", str(bundle), *key, "--json"]) == 0
    assert '"trusted": true' in capsys.readouterr().out
    (bundle / "models" / "m.gguf").write_bytes(b"GGUF of another")
    assert main(["bundle", "verify", str(bundle), *key]) == 6
    assert "models/m.gguf was changed" in capsys.readouterr().err
    assert main(["bundle", "install", str(bundle), "--to", str(tmp_path / "to"), *key]) == 6
    assert "models/m.gguf was changed" in capsys.readouterr().err
    assert main(["bundle", "verify", str(tmp_path)]) == 6
    assert main(["bundle", "key", str(tmp_path / "key")]) == 2
    assert main(["bundle", "create", str(bundle)]) == 2
    assert main(["bundle", "create", str(tmp_path / "x"), "--for", "windows"]) == 2
    assert main(["bundle", "create", str(tmp_path / "x.tar.gz")]) == 2
    assert main(["bundle", "create", str(tmp_path / "x"), "--models", "nobody"]) == 2
    assert main(["bundle", "create", str(tmp_path / "x"), "--models", "none", "--library", "nobody"]) == 3


@pytest.mark.long
def test_a_bundle_is_installed_without_a_network_and_answers(home: Path, tmp_path: Path) -> None:
    """All by `edgerag` and `install.py` as processes of their own; the second under `unshare -rn` in an empty home."""
    alone = ["unshare", "-rn", "env", "-i", f"HOME={tmp_path / 'empty'}", "PATH=/usr/bin:/bin"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("no network namespace is allowed here")
    (tmp_path / "empty").mkdir()
    edgerag = [sys.executable, "-m", "edgerag"]
    subprocess.run([*edgerag, "--library", "demo", "ingest", str(EXAMPLES), "--quiet"], check=True)
    subprocess.run([*edgerag, "bundle", "key", str(tmp_path / "key")], check=True)
    create = [
        *edgerag,
        "bundle",
        "create",
        str(tmp_path / "b.tar"),
        "--library",
        "demo",
        "--key",
        str(tmp_path / "key"),
    ]
    if extra := os.environ.get("BUNDLE_TEST_WHEELS"):
        create += ["--wheels", extra]
    made = subprocess.run(create, capture_output=True, text=True, check=False)
    if made.returncode == 6 and "There are no wheels" in made.stderr:
        pytest.skip(made.stderr[-500:])
    assert made.returncode == 0, made.stderr
    subprocess.run(["tar", "xf", "b.tar"], cwd=tmp_path, check=True)
    folder = tmp_path / "edgerag-bundle"
    small = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".gguf")
    assert small < 80_000_000  # for one machine and Python
    python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    key, target = str(tmp_path / "key.pub"), tmp_path / "installed"
    command = [*alone, str(python), str(folder / "install.py"), "--to", str(target), "--public-key", key]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the manifest is signed with the key" in done.stderr
    ask = [*alone, str(target / "bin" / "edgerag"), "--library", "demo", "ask", QUESTION]
    answer = subprocess.run(ask, capture_output=True, text=True, check=False)
    assert "58 dB(A)" in answer.stdout, answer.stdout + answer.stderr
    verify = [*alone, str(target / "bin" / "edgerag"), "bundle", "verify", str(tmp_path / "b.tar"), "--public-key", key]
    assert subprocess.run(verify, check=False).returncode == 0
    (pack,) = (folder / "packs").iterdir()
    pack.write_bytes(pack.read_bytes()[:-1] + b"x")
    again = [*command[:-4], "--to", str(tmp_path / "second"), "--public-key", key]
    refused = subprocess.run(again, capture_output=True, text=True, check=False)
    assert refused.returncode == 6
    assert f"packs/{pack.name} was changed" in refused.stderr
    assert not list((tmp_path / "second").iterdir())
