"""A result as files: ``result.json`` with every question, ``report.md`` to read, charts as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgerag.errors import UsageError
from edgerag.machine.disk import storage_error
from edgerag.measure.charts import chart_svg, eval_charts
from edgerag.measure.eval.result import Result, result_record
from edgerag.measure.eval.tables import Table, heading, result_tables
from edgerag.safe_text import json_text


def make_folder(folder: Path) -> None:
    """Makes it if it is missing: before the work, not after it. Raises UsageError, StorageFull."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"--out: {str(folder)!r} is a file.", remedy="Name a folder.") from error
    except OSError as error:
        raise storage_error(error, folder) from error


def write_folder(folder: Path, result: Result) -> list[Path]:
    """Writes all files and gives their paths. Raises StorageFull."""
    record = result_record(result, per_question=True)
    charts = {f"{chart.name}.svg": chart_svg(chart) for chart in eval_charts(record)}
    files = {
        "result.json": json_text(record, indent=1) + "\n",
        "report.md": markdown(record, charts=list(charts)),
        **charts,
    }
    written = []
    for name, content in files.items():
        file = folder / name
        try:
            file.write_bytes(content.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise storage_error(error, file) from error
        written.append(file)
    return written


def markdown(record: Mapping[str, Any], *, charts: Sequence[str]) -> str:
    """The report, with its charts beside it."""
    lines = [f"# Evaluation of {_cell(record['set'])}", "", _cell(heading(record)) + ".", ""]
    for table in result_tables(record):
        lines += [f"## {_cell(table.title)}", "", *table_lines(table), ""]
    lines += [f"![{Path(chart).stem.replace('-', ' ')}]({chart})" for chart in charts]
    lines += [""] * bool(charts)
    if notes := record["figures"]["notes"]:
        lines += ["## Notes", "", *(f"- {_cell(note)} ({count:,} times)" for note, count in notes.items()), ""]
    lines += [f"- {_cell(note)}" for note in record["set_notes"]]
    return "\n".join(lines).rstrip() + "\n"


def table_lines(table: Table) -> list[str]:
    """The table as Markdown; figures stand to the right."""
    rows = [[_cell(cell) for cell in row] for row in (table.header, *table.rows)]
    rules = ["---", *["---:"] * (len(table.header) - 1)]
    return ["| " + " | ".join(row) + " |" for row in (rows[0], rules, *rows[1:])]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
