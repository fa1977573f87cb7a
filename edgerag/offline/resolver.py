"""Names are looked up in the machine's own files alone, by whatever native code in this process asks.

A C library asks its resolvers in ways that are no internet sockets of ours: nscd and systemd-resolved sit behind local
sockets. glibc lets a process say where its host names come from (``__nss_configure_lookup``), and asks nscd no more
after that. It holds for this process; a child has its own C library, and only the kernel's filter.
"""

from __future__ import annotations

import ctypes


def look_into_files_only() -> bool:
    """False where the C library has no such call (musl: it asks no daemon, and its own sockets are refused)."""
    try:
        configure = ctypes.CDLL(None).__nss_configure_lookup
    except AttributeError:
        return False
    done = [configure(database, b"files") for database in (b"hosts", b"networks", b"services", b"protocols")]
    return not any(done)
