"""Writes the table of settings into docs/cli.md, from what the program says of them itself.

    .venv/bin/python tools/settings_table.py

tests/test_docs.py fails where the table is not what this writes.
"""

from __future__ import annotations

from pathlib import Path

from edgerag.settings.effective import Setting, all_settings, value_text

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEADER = "| setting | default | meaning |\n|---|---|---|\n"


def settings_table() -> str:
    rows = (f"| `{setting.name}` | {_default(setting)} | {setting.meaning} |\n" for setting in all_settings())
    return HEADER + "".join(rows)


def _default(setting: Setting) -> str:
    default = setting.default
    if default is None:
        return "the model's"
    if isinstance(default, tuple):
        return "`[]`"
    text = value_text(setting, default)
    return f'`"{text}"`' if isinstance(default, str) or setting.is_size else text


def with_table(page: str) -> str:
    """``page`` with the table in the place of the one that it has."""
    before, _, rest = page.partition(HEADER)
    rows = rest.splitlines(keepends=True)
    after = next((at for at, row in enumerate(rows) if not row.startswith("|")), len(rows))
    return before + settings_table() + "".join(rows[after:])


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
