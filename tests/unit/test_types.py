"""Records are reached by one import, whatever module they are in, and made when they are asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import edgerag.types

FOLDER = Path(edgerag.types.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def defined(module: str) -> set[str]:
    """What a module of records defines for others."""
    names: set[str] = set()
    for node in ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def test_all_that_the_modules_define_can_be_imported_from_one_place() -> None:
    assert sorted(edgerag.types.__all__) == sorted(name for module in MODULES for name in defined(module))
    for name in edgerag.types.__all__:
        assert getattr(edgerag.types, name) is not None
    with pytest.raises(ImportError, match="Nobody"):
        from edgerag.types import Nobody  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.parametrize("module", ["edgerag.types", "edgerag.ingest.parse.worker"])
def test_nobody_makes_records_that_were_not_asked_for(module: str) -> None:
    code = f"import sys, {module}; print('edgerag.types.answers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
