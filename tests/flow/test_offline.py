"""Invariant 1: nothing connects anywhere or resolves a name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "docs"

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


def run_day(environ: dict[str, str], prefix: list[str]) -> None:
    for arguments in (
        ["ingest", str(EXAMPLES)],
        ["search", "pump"],
        ["ask", "What does error E-1042 mean?"],
        ["status", "--verify"],
        ["doctor"],
        ["models", "list"],
        ["models", "verify"],
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


def test_a_day_without_a_network(home: Path) -> None:
    probe = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.fail("this test needs `unshare` (util-linux) and user namespaces")
    run_day(dict(os.environ), ["unshare", "-rn"])


def test_nothing_even_tries(home: Path, tmp_path: Path) -> None:
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "sitecustomize.py").write_text(TRAP)
    log = tmp_path / "attempts.log"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "trap"), "TRAP_LOG": str(log)}
    check = "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 9))\nexcept OSError: pass"
    subprocess.run([sys.executable, "-c", check], env=environ, check=True)
    assert log.read_text(), "the trap must work"
    log.unlink()
    run_day(environ, [])
    assert not log.exists(), log.read_text()
