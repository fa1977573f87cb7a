"""Invariant 1: nothing connects anywhere or resolves a name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "docs"

LONG = ["bench", "embed", "--quick", "--json"]  # embeds for some ten seconds what `ingest` embeds, too

# Runs the commands in one process with every door to the network trapped; children inherit the trap
# through sitecustomize on PYTHONPATH.
TRAP = """
import os, socket, sys

def trapped(*args, **kwargs):
    with open(os.environ["TRAP_LOG"], "a") as log:
        log.write(f"{sys.argv} {args!r}\\n")
    raise OSError("the test allows no network")

for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "create_connection"):
    setattr(socket, name, trapped)

def watch(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname"):
        if event.startswith("socket.get") or getattr(args[0], "family", None) != socket.AF_UNIX:
            trapped(event, *map(str, args))

sys.addaudithook(watch)
"""


def run_day(environ: dict[str, str], prefix: list[str], small: Path, *more: list[str]) -> None:
    for arguments in (
        ["ingest", str(EXAMPLES)],
        ["search", "pump"],
        ["ask", "What does error E-1042 mean?"],
        ["status", "--verify"],
        ["doctor"],
        ["models", "list"],
        ["models", "verify"],
        ["models", "recommend"],
        ["models", "tune", "--seconds", "1", "--json"],
        ["bench", "generate", "--chat", str(small), "--part", "prefill", "--json"],
        *more,
    ):
        done = subprocess.run(
            [*prefix, sys.executable, "-m", "edgerag", *arguments],
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.fixture
def own_models(home: Path, models_folder: Path) -> None:
    """What the day writes beside the models is not the checkout's."""
    (home / "models").unlink()
    (home / "models").mkdir()
    for file in models_folder.iterdir():
        if file.suffix == ".gguf":
            (home / "models" / file.name).symlink_to(file)
        elif file.name != "tuning.json":
            shutil.copy(file, home / "models")


@pytest.mark.long
@pytest.mark.usefixtures("own_models")
def test_a_day_without_a_network(tiny_chat_file: Path) -> None:
    probe = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.fail("this test needs `unshare` (util-linux) and user namespaces")
    run_day(dict(os.environ), ["unshare", "-rn"], tiny_chat_file, LONG)


@pytest.mark.usefixtures("own_models")
@pytest.mark.parametrize("more", [(), pytest.param((LONG,), marks=pytest.mark.long)], ids=["day", "long day"])
def test_nothing_even_tries(tmp_path: Path, tiny_chat_file: Path, more: tuple[list[str], ...]) -> None:
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "sitecustomize.py").write_text(TRAP)
    log = tmp_path / "attempts.log"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "trap"), "TRAP_LOG": str(log)}
    check = "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 9))\nexcept OSError: pass"
    subprocess.run([sys.executable, "-c", check], env=environ, check=True)
    assert log.read_text(), "the trap must work"
    log.unlink()
    run_day(environ, [], tiny_chat_file, *more)
    assert not log.exists(), log.read_text()
