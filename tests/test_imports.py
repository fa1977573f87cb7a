"""What the command line may load before it knows what is asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = {"numpy", "llama_cpp", "hnswlib", "textual", "rich", "psutil", "sqlite3", "lxml", "docx", "pypdfium2", "jinja2"}
HEAVY |= {"opentelemetry", "prometheus_client", "http.client", "edgerag.types.answers"}
LIST_MODULES = """
import sys
from edgerag.ui.cli import main
try:
    main({arguments!r})
except SystemExit:
    pass
print(sorted(set(sys.modules) & {heavy!r}), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["ask", "--help"], ["models", "--help"], ["--version"], ["nonsense"]]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = LIST_MODULES.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_numpy_has_one_thread_once_a_command_has_begun() -> None:
    code = LIST_MODULES.format(arguments=["--version"], heavy=set()) + (
        "import os, numpy\nnumpy.ones((600, 600)) @ numpy.ones((600, 600))\nprint(len(os.listdir('/proc/self/task')))"
    )
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.splitlines()[-1] == "1"
