"""What travels with a bundle and installs it: it runs where edgerag is not there yet.

Promises: Python 3.11 and its own library are enough; nothing of edgerag is imported (import-linter holds that), so the
same files serve ``edgerag bundle verify`` and ``install`` here and ``install.py`` there.

    refused.py     why a bundle is not taken
    ed25519.py     signatures are checked (RFC 8032)
    minisign.py    the files that hold them and their keys
    manifest.py    what a bundle holds and for whom
    tar.py         the one kind of .tar file that a bundle is
    contents.py    a bundle is opened, and every byte of it compared
    packs.py       wheels are taken out of the compressed files that they lie in
    machine.py     what this machine and Python are
    installing.py  a new folder with an environment, models and libraries
    script.py      what install.py runs
"""
