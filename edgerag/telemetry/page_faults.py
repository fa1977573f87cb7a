"""Pages that a thread had to wait for: of the mapped index that is the price of what is not in memory."""

from __future__ import annotations

import resource
from dataclasses import dataclass

# Linux counts them for each thread; elsewhere those of the whole process are as near as it gets.
_WHO = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


@dataclass(frozen=True, slots=True)
class PageFaults:
    minor: int  # the page was in memory, but not in this process
    major: int  # it came from the disk

    def __sub__(self, before: PageFaults) -> PageFaults:
        return PageFaults(self.minor - before.minor, self.major - before.major)


def page_faults() -> PageFaults:
    """Those of the thread that asks, since it began."""
    usage = resource.getrusage(_WHO)
    return PageFaults(usage.ru_minflt, usage.ru_majflt)
