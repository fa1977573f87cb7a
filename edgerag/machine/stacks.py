"""How much address space the threads of native code take.

Each thread reserves its stack at once, 8 MB by the usual setting. llama.cpp checks a model's weights with a thread for
each of its tensors, some hundreds at the same time: 2 GB of address space, which a limited process has not, for loops
that need a page.

pthread_setattr_default_np(3), of glibc since 2.18.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

_ATTRIBUTE_BYTES = 128  # more than sizeof(pthread_attr_t): 56 on x86_64, 64 on aarch64


@contextlib.contextmanager
def small_stacks(size_bytes: int) -> Iterator[None]:
    """Threads that native code starts meanwhile have stacks of ``size_bytes``, at least 16 KiB; where the C library
    does not offer that, they are as they were."""
    try:
        library = ctypes.CDLL(None)
        read, write = library.pthread_getattr_default_np, library.pthread_setattr_default_np
        set_size = library.pthread_attr_setstacksize
    except (OSError, AttributeError):
        yield
        return
    set_size.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    before, small = ctypes.create_string_buffer(_ATTRIBUTE_BYTES), ctypes.create_string_buffer(_ATTRIBUTE_BYTES)
    if read(before) or read(small) or set_size(small, size_bytes) or write(small):
        yield
        return
    try:
        yield
    finally:
        write(before)
