"""What the command line may load before it knows what is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"numpy", "llama_cpp", "hnswlib", "textual", "rich", "psutil", "sqlite3", "lxml", "docx", "pypdfium2", "jinja2"}
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
