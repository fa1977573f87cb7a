"""A process that reads a library while another writes to it.

`follow`: looks at the library for each line of standard input, and prints what it saw. `loop`: looks as
often as it can until standard input ends, then prints what it saw in all. `hold FILE`: opens a segment file
and compares what it reads from it, for each line, with what it read first.

The writer's rule, by which a look is judged: document n has the chunks 12n+1 to 12n+12, which get their
vectors, and are removed, all at once.
"""

from __future__ import annotations

import json
import select
import sys
from pathlib import Path
from typing import Any

import numpy as np
from faults.state import TOLERANCE
from faults.writer import IDENTITY, embed, lines, open_small

from edgerag.errors import EdgeragError
from edgerag.index.hnsw.residency import Residency
from edgerag.index.hnsw.search import Segment
from edgerag.index.library import Library

CHUNKS = 12
_QUERY = "query 1"


def document_lines(number: int) -> list[str]:
    return lines(f"d{number}", CHUNKS)


def look(library: Library) -> tuple[list[int], list[str]]:
    """(documents found by their vectors, what is wrong)."""
    query = embed([_QUERY])[0]
    hits = library.search_vectors(query, limit=10**6, ef_search=100)
    ids = np.array([hit.chunk_id for hit in hits], dtype=np.int64)
    numbers, counts = np.unique((ids - 1) // CHUNKS, return_counts=True)
    wrong = [f"document {n} has {c} chunks" for n, c in zip(numbers, counts, strict=True) if c != CHUNKS]
    if len(set(ids.tolist())) != len(ids):
        wrong.append("a chunk was found twice")
    if len(ids):
        expected = embed([document_lines((i - 1) // CHUNKS)[(i - 1) % CHUNKS] for i in ids.tolist()]) @ query
        if not np.allclose([hit.score for hit in hits], expected, atol=TOLERANCE):
            wrong.append("a score is not that of the chunk's vector")
        best = [hit.chunk_id for hit in library.search_vectors(query, limit=5, ef_search=200)]
        if len(best) != 5:
            wrong.append(f"{len(best)} hits where 5 were asked for")
    return numbers.tolist(), wrong


def say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def follow(folder: Path) -> None:
    with open_small(folder, "read") as library:
        say("ready")
        for _ in sys.stdin:
            documents, wrong = look(library)
            say(
                {
                    "documents": documents,
                    "wrong": wrong,
                    "segments": [segment.name for segment in library.status().segments],
                    "words": len(library.search_keywords("word3", limit=1000)),
                }
            )


def loop(folder: Path) -> None:
    looks, seen, all_wrong = 0, set(), []
    with open_small(folder, "read") as library:
        say("ready")
        while not select.select([sys.stdin], [], [], 0)[0]:
            documents, wrong = look(library)
            looks += 1
            seen.add(tuple(documents))
            all_wrong += wrong
        documents, wrong = look(library)
    say({"looks": looks, "states": len(seen), "documents": documents, "wrong": (all_wrong + wrong)[:10]})


def hold(file: Path) -> None:
    segment = Segment(file, identity=IDENTITY, residency=Residency(10**8))
    rows = np.arange(segment.row_count)
    first = segment.labels(rows).tolist(), segment.vectors(rows).tolist()
    say("ready")
    for _ in sys.stdin:
        now = segment.labels(rows).tolist(), segment.vectors(rows).tolist()
        say({"same": now == first, "damage": segment.damage(), "exists": file.exists()})
    segment.close()


def main() -> None:
    try:
        {"follow": follow, "loop": loop, "hold": hold}[sys.argv[1]](Path(sys.argv[2]))
    except EdgeragError as error:
        say({"error": f"{type(error).__name__}: {error}", "wrong": ["an error"]})


if __name__ == "__main__":
    main()
