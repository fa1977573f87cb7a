"""Another process at a folder of states: takes commands on stdin, answers on stdout."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from edgerag.engine.states.key import StateKey
from edgerag.engine.states.store import StateStore


def key_of(name: str) -> StateKey:
    return StateKey(name, "ab" * 8, hashlib.sha256(name.encode()).hexdigest())


def main() -> None:
    store = StateStore(Path(sys.argv[1]), ram_bytes=10**6, disk_bytes=10**9, left_free_bytes=0)
    for line in sys.stdin:
        command, *names = line.split()
        match command:
            case "put":
                for name in names:
                    store.put(key_of(name), name.encode() * 100, token_count=1, cost_s=1.0, labels=frozenset({"doc"}))
            case "get":
                names = [name for name in names if store.get(key_of(name)) is not None]
            case "drop":
                store.drop(names)
            case "forever":
                while True:
                    store.put(key_of(names[0]), bytes([7]) * 5_000_000, token_count=1, cost_s=1.0)
        sys.stdout.write(" ".join(names) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
