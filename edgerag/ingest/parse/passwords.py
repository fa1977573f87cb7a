"""Files that need a password: what is said when it is missing or wrong, in the same words for every format."""

from __future__ import annotations

from edgerag.errors import DocumentEncrypted


def refused(what: str, *, tried: bool) -> DocumentEncrypted:
    """The error for ``what`` ("The PDF"); ``tried``: whether there were passwords and none was right."""
    if tried:
        return DocumentEncrypted(
            f"{what} is protected by a password, and none of the given passwords opens it.",
            remedy="Give the right one with --password, or save a copy without it.",
        )
    return DocumentEncrypted(
        f"{what} is protected by a password.", remedy="Give it with --password, or save a copy without it."
    )
