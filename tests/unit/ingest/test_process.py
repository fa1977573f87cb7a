"""What a parser does, its parent survives. The workers here are stubs that misbehave, and the real one."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from unit.ingest import craft

from edgerag.errors import (
    DocumentDamaged,
    DocumentEncrypted,
    DocumentError,
    DocumentGone,
    DocumentTooLarge,
    DocumentUnsupported,
    ParserDied,
)
from edgerag.hold import Hold
from edgerag.ingest.parse import wire
from edgerag.ingest.parse.process import ParserProcess
from edgerag.ingest.parse.source import Recognised
from edgerag.ingest.parse.wire import Failed, Parsed, Reply, Unchanged
from edgerag.types import PageWanted, ParsedDocument

HEADER = "import os, struct, sys, time\n"
HANG = HEADER + "time.sleep(600)"
DIE = HEADER + "os.kill(os.getpid(), 11)"
LEAVE = HEADER + "sys.exit(7)"
GARBAGE = (
    HEADER + "sys.stdin.buffer.read(12); os.write(1, b'Warning: something from a C library\\n' * 9); time.sleep(600)"
)
LONG = HEADER + "os.write(1, struct.pack('>4sQ', b'EDG1', 2**63)); time.sleep(600)"
NOT_JSON = HEADER + "os.write(1, struct.pack('>4sQ', b'EDG1', 5) + b'{\"a\":'); time.sleep(600)"
FLOOD = HEADER + "os.write(1, struct.pack('>4sQ', b'EDG1', 2**32))\nwhile True: os.write(1, bytes(65536))"
CLOSED = HEADER + "os.close(1); time.sleep(600)"
LIES = (
    HEADER
    + """
body = b'{"state": {"sha256": "", "size_bytes": 1, "mtime_ns": 1}, "document": {"text": "abc", "title": "", \
"media_type": "", "pages": [[1, 0, 99]], "headings": [], "warnings": []}}'
os.write(1, struct.pack('>4sQ', b'EDG1', len(body)) + body); time.sleep(600)"""
)


def process(deadline_s: float = 30, script: str | None = None, memory: int = 2_000_000_000) -> ParserProcess:
    command = None if script is None else [sys.executable, "-c", script]
    return ParserProcess(memory_bytes=memory, max_file_bytes=50_000_000, deadline_s=deadline_s, command=command)


@pytest.fixture
def parser() -> Iterator[ParserProcess]:
    made = process()
    yield made
    made.close()


def reason(reply: Reply | None, kind: type[DocumentError] = ParserDied) -> str:
    assert isinstance(reply, Failed), reply
    assert type(reply.error) is kind
    return reply.error.message


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (HANG, r"stopped after 0\.5 seconds"),
        (FLOOD, r"stopped after 0\.5 seconds|no answer"),
        (DIE, "SIGSEGV"),
        (LEAVE, "exit code 7"),
        (GARBAGE, "no answer"),
        (LONG, "no answer"),
        (NOT_JSON, "no answer"),
        (CLOSED, "closed its connection"),
        (LIES, "no answer"),
    ],
)
def test_a_misbehaving_worker_fails_its_file_only(script: str, said: str) -> None:
    broken = process(0.5 if script in (HANG, FLOOD) else 20, script)
    for _ in range(2):  # each time a fresh one
        reply = broken.read("/x.txt")
        assert re.search(said, reason(reply))
        assert isinstance(reply, Failed) and reply.lasting and not reply.skipped
    assert broken._process is None, "nothing is left running"


def test_a_page_that_ends_each_worker_is_tried_no_more_than_once_again(tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = f"open({str(started)!r}, 'a').write('x'); " + DIE
    broken = process(20, script)
    broken._process = broken._start()  # one that waits
    reply = broken.view("/x.pdf", PageWanted(1, 50))
    assert isinstance(reply, Failed) and "SIGSEGV" in reply.error.message
    assert started.read_text() == "xx"


def test_a_cancelled_wait_ends_and_leaves_no_process() -> None:
    stop = threading.Event()
    hanging = process(600, HANG)
    threading.Timer(0.3, stop.set).start()
    assert hanging.read("/x.txt", stopped=stop.is_set) is None
    assert hanging._process is None


SLOW = (
    HEADER
    + """
at = sys.argv[1]
open(at, 'w').close()
while not os.path.exists(at + '.answer'): time.sleep(0.01)
os.write(1, b'no answer at all'); time.sleep(600)"""
)


def state_of(pid: int) -> str:
    """R, S, T ..., as the kernel tells it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def held_process(hold: Hold, at: Path, *, deadline_s: float) -> ParserProcess:
    command = [sys.executable, "-c", SLOW, str(at)]
    return ParserProcess(
        memory_bytes=2_000_000_000, max_file_bytes=1000, deadline_s=deadline_s, hold=hold, command=command
    )


def test_a_held_worker_stands_still_and_no_deadline_comes_nearer(tmp_path: Path) -> None:
    now = [1000.0]
    hold, at = Hold(lambda: now[0]), tmp_path / "at"
    parser = held_process(hold, at, deadline_s=30)
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(parser.read, "/x.txt")
        until(at.exists)
        assert parser._process is not None
        pid = parser._process.pid
        hold.begin()
        until(lambda: state_of(pid) == "T")
        now[0] += 600
        (tmp_path / "at.answer").touch()
        assert state_of(pid) == "T" and not reading.done()
        hold.end()
        assert "no answer" in reason(reading.result()), "what it said came through: no deadline has stopped it"
    parser.close()


def test_a_held_worker_is_stopped_at_once(tmp_path: Path) -> None:
    hold, stop, at = Hold(), threading.Event(), tmp_path / "at"
    parser = held_process(hold, at, deadline_s=600)
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(parser.read, "/x.txt", stopped=stop.is_set)
        until(at.exists)
        assert parser._process is not None
        pid = parser._process.pid
        hold.begin()
        until(lambda: state_of(pid) == "T")
        stop.set()
        assert reading.result() is None
    assert not Path(f"/proc/{pid}").exists(), "it is gone, though it stood still"


def test_the_real_worker_reads_and_stays(parser: ParserProcess, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Title\n\nText.")
    (tmp_path / "b.pdf").write_bytes(craft.text_pdf("On the page."))
    (tmp_path / "c.docx").write_bytes(craft.docx(craft.paragraph("In the document.")))
    (tmp_path / "d.html").write_text("<p>In the page.</p>")
    reply = parser.read(str(tmp_path / "a.md"))
    assert isinstance(reply, Parsed)
    assert reply.document.headings[0].title == "Title"
    assert reply.state.size_bytes == 14
    assert reply.state.mtime_ns == (tmp_path / "a.md").stat().st_mtime_ns
    first = parser._process
    for file, text in (("b.pdf", "On the page."), ("c.docx", "In the document."), ("d.html", "In the page.")):
        reply = parser.read(str(tmp_path / file))
        assert isinstance(reply, Parsed) and reply.document.text == text
    assert parser._process is first
    assert isinstance(parser.read(str(tmp_path / "d.html"), known_sha256=reply.state.sha256), Unchanged)


def test_failures_come_back_by_kind(parser: ParserProcess, tmp_path: Path) -> None:
    (tmp_path / "locked.pdf").write_bytes(craft.pdf([[(700, 12, "x")]], encrypted=True))
    (tmp_path / "half.docx").write_bytes(craft.docx(craft.paragraph("word " * 900))[:300])
    (tmp_path / "bomb.docx").write_bytes(craft.bomb())
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    os.mkfifo(tmp_path / "pipe")
    assert "password" in reason(parser.read(str(tmp_path / "locked.pdf")), DocumentEncrypted)
    assert "damaged" in reason(parser.read(str(tmp_path / "half.docx")), DocumentDamaged)
    assert "200 MB" in reason(parser.read(str(tmp_path / "bomb.docx")), DocumentDamaged)
    assert "PNG" in reason(parser.read(str(tmp_path / "a.png")), DocumentUnsupported)
    assert "not a regular file" in reason(parser.read(str(tmp_path / "pipe")), DocumentUnsupported)
    assert "was gone" in reason(parser.read(str(tmp_path / "gone")), DocumentGone)


def test_a_file_over_the_size_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large.html").write_bytes(b"<p>Words.</p>\n<p>More</p>" * 2_400_000)
    parser = process()
    reply = parser.read(str(tmp_path / "large.html"))
    parser.close()
    assert "larger than the limit (60,000,000 bytes, the limit is 50,000,000)" in reason(reply, DocumentTooLarge)
    assert isinstance(reply, Failed) and reply.skipped


def test_running_out_of_memory_fails_that_file_only(tmp_path: Path) -> None:
    (tmp_path / "wide.md").write_bytes(("ж" * 20_000_000).encode())
    (tmp_path / "small.txt").write_text("small")
    parser = process(memory=220_000_000)
    assert "memory" in reason(parser.read(str(tmp_path / "wide.md")))
    reply = parser.read(str(tmp_path / "small.txt"))
    parser.close()
    assert isinstance(reply, Parsed)


@pytest.mark.parametrize(
    "name", [b"caf\xe9 \xff.txt", b"new\nline.txt", "日本.txt".encode(), b"-rf.txt", b"\xed\xa0\x80.txt"]
)
def test_any_file_name_arrives(parser: ParserProcess, tmp_path: Path, name: bytes) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
    Path(path).write_text("found")
    reply = parser.read(path)
    assert isinstance(reply, Parsed)
    assert reply.document.text == "found"
    reply.document.title.encode("utf-8")


def test_a_module_in_the_working_folder_is_not_imported(
    parser: ParserProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("import os; os._exit(3)")
    (tmp_path / "a.txt").write_text("safe")
    monkeypatch.chdir(tmp_path)
    assert isinstance(parser.read(str(tmp_path / "a.txt")), Parsed)


FENCED = """
import os, sys
sys.path.insert(0, {root!r})
from edgerag.ingest.parse import limits
limits.leave_network()
limits.limit_memory(2_000_000_000)
limits.fence()
import socket, subprocess
def socket_(): socket.socket()
def lookup(): socket.getaddrinfo("localhost", 80)
def write(): open({file!r}, "w")
def make(): os.open({file!r}, os.O_CREAT | os.O_RDWR)
def remove(): os.remove(__file__)
def start(): subprocess.run(["true"])
def shell(): os.system("true")
def fork(): os.fork()
for attempt in (socket_, lookup, write, make, remove, start, shell, fork):
    try:
        attempt()
    except PermissionError:
        continue
    sys.exit(f"not stopped: {{attempt.__name__}}")
interfaces = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
print(interfaces)
"""


def test_the_fence_stops_network_files_and_programs(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    script = tmp_path / "fenced.py"
    script.write_text(FENCED.format(root=root, file=str(tmp_path / "made.txt")))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "made.txt").exists()
    probe = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    if probe.returncode == 0:
        assert done.stdout.strip() == "['lo']", "where namespaces are allowed there is no interface left"


ORPHAN = """
import sys
sys.path.insert(0, {root!r})
from edgerag.ingest.parse import wire
from edgerag.ingest.parse.process import ParserProcess
parser = ParserProcess(memory_bytes=2_000_000_000, max_file_bytes=1000, deadline_s=60)
parser.read({file!r})
print(parser._process.pid, flush=True)
sys.stdin.read()
"""


def test_the_worker_dies_with_its_parent_and_not_of_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    code = ORPHAN.format(root=str(Path(__file__).parents[3]), file=str(tmp_path / "a.txt"))
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None and parent.stdin is not None
    worker = int(parent.stdout.readline())
    os.kill(worker, signal.SIGINT)
    assert os.getpgid(worker) != os.getpgid(parent.pid), "Ctrl-C in the terminal does not reach it"
    watch = os.pidfd_open(worker)  # readable when the process has ended
    parent.kill()
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    assert select.select([watch], [], [], 10)[0], "the worker ended"
    os.close(watch)


def test_messages_hold_any_text() -> None:
    request = wire.Request(
        "/\udcff\n",
        "",
        1,
        1.5,
        passwords=("\udcff", "", "two words"),
        ocr="auto",
        recognised=(Recognised(2, "Read.", 87.5, "\udcff"),),
        picture_of=2,
    )
    assert wire.read_request(json.loads(wire.frame(wire.request_body(request))[wire.HEADER.size :])) == request
    assert "two words" not in repr(request)


@pytest.mark.parametrize(
    "reply",
    [
        wire.ToRecognise((2, 3)),
        wire.Picture(b"P5\n1 1\n255\n\xff"),
        Parsed(
            ParsedDocument("abc def", "T", "text/plain", hidden=((0, 3), (4, 7))), wire.FileState("0" * 64, 7, 1), ()
        ),
    ],
)
def test_replies_come_back_as_they_were(reply: Reply) -> None:
    assert wire.read_reply(json.loads(wire.frame(wire.reply_body(reply))[wire.HEADER.size :])) == reply


def test_hidden_spans_outside_the_text_are_refused() -> None:
    body = dict(wire.reply_body(Parsed(ParsedDocument("abc", "", ""), wire.FileState("", 1, 1), ())))
    body["document"] = {**body["document"], "hidden": [[0, 9]]}
    with pytest.raises(ValueError, match="hidden"):
        wire.read_reply(body)
