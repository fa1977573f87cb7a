"""Made threads-vN.sqlite.xz and traces-vN.sqlite.xz, with what is in them in a .json beside each.

    python tests/golden/libraries/make_private.py threads COMMIT
    python tests/golden/libraries/make_private.py traces COMMIT

With the program of that commit, as make.py does it for libraries.
"""

from __future__ import annotations

import json
import lzma
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from make import HERE, program_of

_AS_OF_NS = 1_700_000_000_000_000_000


def main() -> None:
    if sys.argv[1:2] == ["inside"]:
        kind, file, expected = sys.argv[2:]
        made = {"threads": threads, "traces": traces}[kind](Path(file))
        Path(expected).write_text(json.dumps(made, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
        return
    kind, revision = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        environment, commit = program_of(revision, scratch / "program")
        file, expected = scratch / f"{kind}.sqlite", scratch / "expected.json"
        command = [sys.executable, __file__, "inside", kind, str(file), str(expected)]
        environment["PYTHONPATH"] += os.pathsep + str(HERE)
        subprocess.run(command, env=environment, cwd=scratch, check=True)
        database = sqlite3.connect(file)
        (version,) = database.execute("PRAGMA user_version").fetchone()
        database.close()
        target = HERE / f"{kind}-v{version}.sqlite.xz"
        target.write_bytes(lzma.compress(file.read_bytes(), preset=9))
        record = {"version": version, "commit": commit} | json.loads(expected.read_text())
        named = HERE / f"{kind}-v{version}.json"
        named.write_text(json.dumps(record, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        sys.stdout.write(f"{target.name}: {target.stat().st_size:,} bytes\n")


def threads(file: Path) -> dict[str, Any]:
    from unit.threads.conversations import answer

    from edgerag.threads.store import ThreadStore

    store = ThreadStore(file, clock_ns=lambda: _AS_OF_NS)
    first = store.ask("Which torque do the lid screws need?", library="default")
    store.finish(first.id, answer("Which torque do the lid screws need?", "Twelve newton metres [1]."))
    second = store.ask("Und auf Deutsch, für Häuser?", library="default", thread_id=first.thread_id, parent_id=first.id)
    store.fail(second.id, text="Zwölf", problem="The model went away.")
    store.ask("ポンプの圧力は?", library="other")
    store.keep_draft(None, "not sent yet", rows_filter(), library="default")
    made = {
        "threads": [
            {"title": head.title, "library": head.library, "questions": head.question_count}
            for head in store.heads(library=None)
        ],
        "exchanges": [
            {"question": each.question, "text": each.text, "state": each.state}
            for each in store.thread(first.thread_id).exchanges
        ],
        "found": [match.head.title for match in store.search("torque", library=None)],
    }
    store.close()
    return made


def rows_filter() -> Any:
    from edgerag.types import FilterText

    return FilterText()


def traces(file: Path) -> dict[str, Any]:
    from edgerag.telemetry.otel import Tracing, trace_id_of
    from edgerag.telemetry.otlp import otlp_text, to_otlp
    from edgerag.telemetry.ring import TraceHead, TraceRing
    from edgerag.telemetry.spans import Span

    made = []
    with TraceRing(file, writing="WAL") as ring:
        for number, kind in enumerate(("ask", "ingest", "ask")):
            began, ended = _AS_OF_NS + number, _AS_OF_NS + number + 5_000_000
            inner = Span("query.retrieval.vector", began, ended - 1_000_000, {"hits": 7})
            spans = Tracing().made(Span("rag.query", began, ended, {"rag.answer": True}, inner=(inner,)))
            head = TraceHead(trace_id_of(spans[-1]), kind, began, ended - began, "done")  # type: ignore[arg-type]
            ring.put(head, otlp_text(to_otlp(spans)), keep=10)
            made.append({"trace_id": head.trace_id, "kind": kind, "duration_ns": head.duration_ns})
    return {"traces": made}


if __name__ == "__main__":
    main()
