"""``edgerag eval``: judges search and answers on a set of questions, and compares two results."""

from __future__ import annotations

import argparse
import dataclasses
import os
import threading
from typing import TYPE_CHECKING

from edgerag.errors import UsageError
from edgerag.locations import user_cache, user_path
from edgerag.measure.eval.compare import compare
from edgerag.measure.eval.evaluate import Options, Watcher, evaluate
from edgerag.measure.eval.folder import make_folder, write_folder
from edgerag.measure.eval.readers import read_set
from edgerag.measure.eval.result import read_result, result_record
from edgerag.measure.eval.tables import Table, comparison_notes, comparison_table, heading, result_tables
from edgerag.ui import output, report
from edgerag.ui.place import short_path

if TYPE_CHECKING:
    from edgerag.session import Session

_COMPARE = "compare"


def run_eval(session: Session, arguments: argparse.Namespace, stop: threading.Event) -> int:
    """``stop`` is set when the user has had enough. Raises EdgeragError."""
    first, *others = arguments.set
    if first == _COMPARE:
        return _compare(arguments, others)
    if others:
        raise UsageError(
            f"One set at a time, and {others[0]!r} is another.",
            remedy="`edgerag eval compare A.json B.json` compares results; --foreign SET asks another set's questions.",
        )
    return _evaluate(session, arguments, stop)


def _evaluate(session: Session, arguments: argparse.Namespace, stop: threading.Event) -> int:
    questions = read_set(user_path(arguments.set[0]), qrels=arguments.qrels)
    foreign = [read_set(user_path(name)) for name in arguments.foreign]
    folder = user_path(arguments.out) if arguments.out else None
    if folder is not None:
        make_folder(folder)
    for note in (note for each in (questions, *foreign) for note in each.notes):
        report.say(f"note: {note}")
    options = Options(
        cache=user_path(arguments.cache) if arguments.cache else user_cache(os.environ) / "eval",
        half=arguments.half,
        limit=arguments.limit,
        passages="whole" if arguments.whole else "chunked",
        answers=arguments.answers,
        own_library=bool(arguments.library),
    )
    with report.progress_bar(quiet=arguments.quiet) as bar:
        result = evaluate(
            questions,
            session,
            foreign=foreign,
            options=options,
            watcher=Watcher(ingesting=bar.show, asking=bar.show_questions),
            cancelled=stop.is_set,
        )
    record = result_record(result, per_question=False)
    if arguments.json:
        output.write_json(record)
    else:
        output.write(f"{heading(record)}\n")
        for table in result_tables(record):
            output.write(f"\n{_text(table)}")
    for note, count in record["figures"]["notes"].items():
        report.say(f"note: {note} ({count:,} of {len(result.questions):,} questions)")
    if folder is not None:
        for file in write_folder(folder, result):
            report.say(f"written: {short_path(str(file))}")
    return report.EXIT_OK


def _compare(arguments: argparse.Namespace, files: list[str]) -> int:
    if len(files) != 2:
        raise UsageError("Two results are compared.", remedy="edgerag eval compare A/result.json B/result.json")
    comparison = compare(*(read_result(user_path(name)) for name in files))
    if arguments.json:
        output.write_json(dataclasses.asdict(comparison))
    else:
        output.write(_text(comparison_table(comparison, names=("first", "second"))))
    for note in comparison_notes(comparison):
        report.say(note)
    return report.EXIT_OK


def _text(table: Table) -> str:
    return f"{table.title}\n{output.table([table.header, *table.rows])}"
