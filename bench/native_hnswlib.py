"""hnswlib compiled for this processor, which is the peer to be measured against: the fastest that it can be.

    PYTHONPATH="$(python bench/native_hnswlib.py)" edgerag bench index --rows 200000 --json

tools/prepare.py builds hnswlib for any processor, with SSE alone, because there it only builds graphs; as a
searcher that build is half as fast. This one is compiled by pip, once, into the cache of the benches, and never
installed. Prints the folder.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from vector_sets import cache_folders

_REQUIREMENT = "hnswlib==0.8.0"


def native_hnswlib() -> Path:
    """The folder to put on PYTHONPATH. Raises CalledProcessError if it cannot be built."""
    folder = cache_folders()[0] / "native-hnswlib"
    if not any(folder.glob("hnswlib*.so")):
        # --no-cache-dir: pip's cache may hold a build for any processor under the same name.
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-cache-dir", "--no-binary", "hnswlib"]
        command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder), _REQUIREMENT]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return folder


if __name__ == "__main__":
    print(native_hnswlib())
