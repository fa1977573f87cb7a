"""Turns the process that ocr.py starts into Tesseract, after it has given up what Tesseract does not need."""

from __future__ import annotations

import os
import sys

from edgerag.ingest.parse import limits


def main() -> None:
    parent_pid, memory_bytes, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    command = sys.argv[4:]
    limits.die_with_parent(parent_pid)
    limits.leave_network()
    limits.limit_memory(memory_bytes)  # and no file can be written
    limits.limit_processor(seconds)
    os.execv(command[0], command)  # noqa: S606 - no shell; found in PATH by the parent
