"""The parser process: reads requests from standard input and answers each, one after the other.

Started by process.py, which hands it its parent's number and a memory limit. It ends when
its input ends. Whatever a parser prints goes nowhere, so that it cannot garble the answers.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import BinaryIO

from edgerag.errors import ParserDied
from edgerag.ingest.parse import limits
from edgerag.ingest.parse.reader import Reader
from edgerag.ingest.parse.wire import HEADER, MAGIC, Failed, frame, read_request, reply_body


def main() -> None:
    parent_pid, memory_bytes = int(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    limits.die_with_parent(parent_pid)
    limits.leave_network()
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)
    limits.limit_memory(memory_bytes)
    limits.fence()
    serve(requests, replies)


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answers until the input ends."""
    reader = Reader()
    while len(header := requests.read(HEADER.size)) == HEADER.size:
        magic, length = HEADER.unpack(header)
        if magic != MAGIC:
            raise ValueError("not a request")
        request = read_request(json.loads(requests.read(length)))
        limits.limit_processor(request.seconds)
        exhausted = False
        try:
            reply = frame(reply_body(reader.read(request)))
        except MemoryError:
            exhausted = True
            reply = b""
        except BaseException as error:  # noqa: BLE001 - native parsers panic with BaseException (seen in Rust ones)
            reply = frame(reply_body(_died(f"The parser crashed: {type(error).__name__}: {str(error)[:200]}")))
        if exhausted:  # here, where the frames that held the memory are gone
            reply = frame(reply_body(_died("The parser ran out of memory")))
        replies.write(reply)
        replies.flush()
        if exhausted:
            return  # what is left of the heap is in pieces: the parent starts a fresh process


def _died(what: str) -> Failed:
    return Failed(ParserDied(f"{what}."), skipped=False, lasting=True)


if __name__ == "__main__":
    main()
