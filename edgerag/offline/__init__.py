"""The process shut off from every network, and the proof of it.

    allowed.py     what the settings let through: ports of this machine itself
    hook.py        the refusal inside Python, which says where and why
    kernel.py      the refusal by the kernel, which native code and child processes cannot pass by
    landlock.py    the ports that a process with loopback may use, held by the kernel
    resolver.py    names are looked up in the machine's own files alone
    guard.py       all of them, put on once and never off
    proof.py       tries every way out, and tells who refused it

See docs/security.md for what is promised and what is not.
"""
