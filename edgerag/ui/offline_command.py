"""``edgerag doctor --offline-proof``: every way to a network is tried, and who refused it is shown."""

from __future__ import annotations

import argparse
import dataclasses

from edgerag.offline.allowed import allowed_by
from edgerag.offline.proof import Attempt, attempts
from edgerag.settings.effective import SettingsSources
from edgerag.ui import output, report

_LAYERS = {"python": "Python's audit hook", "kernel": "the kernel", "libc": "the C library", "": ""}


def run_proof(sources: SettingsSources, arguments: argparse.Namespace) -> int:
    """Exit code 1 if any way is open. Raises EdgeragError."""
    tried = list(attempts(allowed_by(sources.load())))
    if arguments.json:
        output.write_json({"attempts": [dataclasses.asdict(attempt) for attempt in tried]})
    else:
        output.write(output.table([_row(attempt) for attempt in tried]))
    ways = [attempt for attempt in tried if attempt.open]
    if not ways:
        report.say(f"None of {len(tried)} ways to a network is open.")
        return report.EXIT_OK
    report.say(f"{len(ways)} of {len(tried)} ways to a network are open. {_remedy(ways)}")
    return report.EXIT_SOME_FAILED


def _row(attempt: Attempt) -> tuple[str, ...]:
    verdict = "OPEN" if attempt.open else "refused" if attempt.layer else "absent"
    by = f"by {_LAYERS[attempt.layer]}" if attempt.layer else ""
    return verdict, attempt.way, f"{by}: {attempt.said}" if by else attempt.said


def _remedy(ways: list[Attempt]) -> str:
    if all("child process: the resolver" in attempt.way for attempt in ways):
        return "Set offline.local_sockets to false: then no child can ask the resolvers of this machine."
    return "Give the program no network: in a network namespace (`unshare -rn edgerag ...`), or by the firewall."
