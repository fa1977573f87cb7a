"""Writes the table of the tuning guide into docs/tuning.md, from what `edgerag doctor` suggests itself.

    .venv/bin/python tools/tuning_table.py

tests/test_docs.py fails where the table is not what this writes.
"""

from __future__ import annotations

from pathlib import Path

from edgerag.settings.tuning_guide import guide_rows

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tuning.md"
HEADER = "| symptom | look at | knob | expected effect | measured by |\n|---|---|---|---|---|\n"


def tuning_table() -> str:
    return HEADER + "".join(f"| {' | '.join(row)} |\n" for row in guide_rows())


def with_table(page: str) -> str:
    """``page`` with the table in the place of the one that it has."""
    before, _, rest = page.partition(HEADER)
    rows = rest.splitlines(keepends=True)
    after = next((at for at, row in enumerate(rows) if not row.startswith("|")), len(rows))
    return before + tuning_table() + "".join(rows[after:])


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
