"""Which commands need what of the processor, asked before any of them loads a native library."""

from __future__ import annotations

import argparse
import os

from edgerag.locations import locate
from edgerag.machine.cpu import check_processor

# Models are tried by the catalogue, each by a child of its own; these commands build a graph in this process, and so
# may the terminal UI, which has no name. `doctor` asks and tells all by itself.
_BUILDING = frozenset({None, "ingest", "library", "bench", "eval"})


def check(arguments: argparse.Namespace) -> None:
    """Raises ProcessorUnfit, with one sentence, where the command would end without one."""
    check_processor()
    if arguments.command in _BUILDING:
        from edgerag.native_builds import check_builds

        check_builds(locate(os.environ).models, ("hnswlib",))
