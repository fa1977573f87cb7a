"""The names under which the model's states of chunks are kept.

``doc-{hash}-chunk-{idx}-v{version}``: the first 16 hex digits of the SHA-256 of the document's path, the chunk's
ordinal, and the version of its text (see kv_keys.py). No word of a document stands in them.
"""

from __future__ import annotations

import hashlib
import re

from edgerag.index.store import damaged_row, sql_text

_HASH = re.compile(r"[0-9a-f]{16}")


def document_hash(path: str) -> str:
    stored = sql_text(path)
    raw = stored if isinstance(stored, bytes) else stored.encode("utf-8")
    return hashlib.sha256(raw).hexdigest()[:16]


def document_name(document: object) -> str:
    """``doc-{hash}``, which all states of a document begin with. Raises LibraryDamaged for what is no hash."""
    if not isinstance(document, str) or not _HASH.fullmatch(document):
        raise damaged_row(f"{document!r} is no hash of a document's path")
    return f"doc-{document}"


def chunk_name(document: object, ordinal: object, version: object) -> str:
    """Raises LibraryDamaged for what nobody wrote: SQLite keeps any value in any column."""
    if not (isinstance(ordinal, int) and ordinal >= 0 and isinstance(version, int) and version >= 1):
        raise damaged_row(f"chunk {ordinal!r} has the version {version!r}")
    return f"{document_name(document)}-chunk-{ordinal}-v{version}"
