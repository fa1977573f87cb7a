"""Every file of a folder, and mutations of them, through the parser process: no crash, no hang, every failure named.

    python bench/ingest_fuzz.py --docs FOLDER [--mutations 2000] [--seed 1] [--json FILE]

A mutation flips bytes, cuts, doubles, blanks or shuffles a piece of a file; the same seed makes the same ones. Members
of archives and mails are read as ingest reads them. What counts as a fault: an answer that is none, a parser that died
(it crashed, ran out of time or memory, or raised what no parser should), or a text whose pages or headings do not lie
in it. The summary names them; a file that makes one is kept beside the result.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from record import record

from edgerag.config import IngestSettings
from edgerag.errors import ParserDied
from edgerag.ingest.parse.process import ParserProcess
from edgerag.ingest.parse.wire import Failed, Parsed, Reply

_LARGEST_BYTES = 3_000_000  # of a file that is mutated: the large ones say nothing more
_MOST_MEMBERS = 200
_PIECE = 512


@dataclass(slots=True)
class Tally:
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    faults: list[dict[str, str]] = field(default_factory=list)
    slowest_s: float = 0.0
    slowest: str = ""

    def add(self, name: str, reply: Reply, seconds: float) -> None:
        if seconds > self.slowest_s:
            self.slowest_s, self.slowest = seconds, name
        if isinstance(reply, Failed):
            self.outcomes["skipped" if reply.skipped else "failed"] += 1
            self.errors[type(reply.error).__name__] += 1
            if isinstance(reply.error, ParserDied):
                self.faults.append({"file": name, "reason": str(reply.error)})
        else:
            self.outcomes["read"] += 1

    def figures(self) -> dict[str, Any]:
        return {
            "outcomes": dict(self.outcomes),
            "errors": dict(self.errors),
            "faults": len(self.faults),
            "first_faults": self.faults[:20],
            "slowest_s": round(self.slowest_s, 2),
            "slowest": self.slowest,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--mutations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where files that make a fault are kept")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    files = sorted(path for path in arguments.docs.rglob("*") if path.is_file())
    settings = IngestSettings()
    reader = ParserProcess(
        memory_bytes=settings.parse_memory, max_file_bytes=settings.max_file_size, deadline_s=settings.parse_deadline_s
    )
    whole, mutated = Tally(), Tally()
    began = time.perf_counter()
    for path in files:
        _read(reader, path, str(path.relative_to(arguments.docs)), whole)
    whole_s = time.perf_counter() - began
    print(f"{len(files)} files in {whole_s:.1f} s: {dict(whole.outcomes)}, {len(whole.faults)} faults")
    small = [path for path in files if 0 < path.stat().st_size <= _LARGEST_BYTES]
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-") as folder:
        for number in range(arguments.mutations):
            path = small[number % len(small)]
            target = Path(folder) / path.name
            target.write_bytes(bytes(_mutated(bytearray(path.read_bytes()), chance)))
            before = len(mutated.faults)
            _read(reader, target, f"{path.relative_to(arguments.docs)} #{number}", mutated)
            if arguments.keep is not None and len(mutated.faults) > before:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                target.rename(arguments.keep / f"{number}-{path.name}")
            else:
                target.unlink()
            if number % 200 == 199:
                print(f"{number + 1} mutations: {dict(mutated.outcomes)}, {len(mutated.faults)} faults", flush=True)
    reader.close()
    figures = {
        "files": len(files),
        "files_s": round(whole_s, 2),
        "whole": whole.figures(),
        "mutations": arguments.mutations,
        "mutated": mutated.figures(),
    }
    print(record("ingest_fuzz", figures, parameters={"seed": arguments.seed}, file=arguments.json))


def _read(reader: ParserProcess, path: Path, name: str, tally: Tally) -> None:
    """The file and what is in it, at any depth."""
    for member, reply, seconds in _replies(reader, path, (), [_MOST_MEMBERS]):
        tally.add("!/".join((name, *member)), reply, seconds)


def _replies(
    reader: ParserProcess, path: Path, member: tuple[str, ...], left: list[int]
) -> Iterator[tuple[tuple[str, ...], Reply, float]]:
    began = time.perf_counter()
    reply = reader.read(str(path), member=member)
    assert reply is not None, "nothing stops it"
    yield member, reply, time.perf_counter() - began
    for inner in reply.members if isinstance(reply, Parsed) else ():
        left[0] -= 1
        if left[0] >= 0:
            yield from _replies(reader, path, (*member, inner), left)


def _mutated(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.randint(1, 4)):
        if not data:
            break
        start = chance.randrange(len(data))
        end = min(len(data), start + chance.randint(1, _PIECE))
        kind = chance.choice(("flip", "flip", "flip", "cut", "end", "double", "blank", "noise", "move"))
        if kind == "flip":
            for _ in range(chance.randint(1, 16)):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        elif kind == "cut":
            del data[start:end]
        elif kind == "end":
            del data[max(start, len(data) // 4) :]
        elif kind == "double":
            data[start:start] = data[start:end] * chance.choice((1, 1, 50))
        elif kind == "blank":
            data[start:end] = bytes(end - start)
        elif kind == "noise":
            data[start:end] = chance.randbytes(end - start)
        else:
            piece = data[start:end]
            del data[start:end]
            place = chance.randrange(len(data) + 1)
            data[place:place] = piece
    return data


if __name__ == "__main__":
    main()
