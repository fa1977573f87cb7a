"""How a report of this program is told from a document: one that lies in a folder of documents is not read as one."""

from __future__ import annotations

import codecs
from typing import Final

COLUMNS: Final = (
    "path", "state", "reason", "media_type", "language", "pages", "chunks", "seconds", "characters", "size_bytes",
    "text_share", "warnings",
)  # fmt: skip
# The first key of a report in JSON.
JSON_KEY: Final = "report"
JSON_VALUE: Final = "edgerag ingest"

_STARTS = (f'{{\n  "{JSON_KEY}": "{JSON_VALUE}"'.encode(), ",".join(COLUMNS).encode() + b"\n")


def is_own_report(head: bytes) -> bool:
    """Whether a file that begins so was written by ``edgerag ingest --report``."""
    return head.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").startswith(_STARTS)
