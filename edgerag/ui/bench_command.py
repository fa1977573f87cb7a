"""``edgerag bench``: measures the program on this machine, and says how it stands beside its peers."""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgerag.config import parse_size
from edgerag.errors import UsageError
from edgerag.locations import is_there, user_path
from edgerag.machine.disk import storage_error
from edgerag.types import Observation
from edgerag.ui import output, report

if TYPE_CHECKING:
    from edgerag.session import Session


_PEER_BENCHES = ("index", "generate", "ingest")
_QUICK_ROWS = 5_000
_QUICK_PARTS = ("prefill", "decode")

Say = Callable[[str], None]


def run_bench(session: Session, arguments: argparse.Namespace) -> int:
    """Raises UsageError, ModelError. Ended from outside, it leaves no folders behind."""
    from edgerag.measure.field.against import against_text, compare, read_run

    before = read_run(user_path(arguments.against)) if arguments.against else None  # wrong names are said first
    if arguments.html:
        _check_place(user_path(arguments.html))
    if getattr(arguments, "chat", None):
        session.catalog.find("chat", arguments.chat)
    with _ended_like_an_interrupt() as say:
        figures = _figures(session, arguments, say)
    if before is not None:
        figures["against"] = compare(figures, before)
    if getattr(arguments, "calibrate", False):
        _calibrate(session, figures)
    if arguments.html:
        from edgerag.measure.field.report import report_html

        _write(user_path(arguments.html), report_html(figures))
    if arguments.json:
        output.write_json(figures)
        return report.EXIT_OK
    output.write(_text(arguments.action, figures))
    if before is not None:
        output.write(against_text(figures["against"]))
    return report.EXIT_OK


def _figures(session: Session, arguments: argparse.Namespace, say: Say) -> dict[str, Any]:
    if arguments.action not in _PEER_BENCHES:
        from edgerag.measure.field.run import bench_field

        return bench_field(
            arguments.action,
            catalog=session.catalog,
            settings=session.settings,
            quick=arguments.quick,
            progress=say,
        )
    from edgerag.measure.field.peers import peer_series
    from edgerag.measure.field.series import series_record

    measure = {"index": _index, "generate": _generate, "ingest": _ingest}[arguments.action]
    figures = measure(session, arguments, say)
    series = {one.name: series_record(one) for one in peer_series(arguments.action, figures)}
    return {**figures, "quick": arguments.quick, "series": series}


def _calibrate(session: Session, figures: dict[str, Any]) -> None:
    """The latency model of the chat model, from the user's own answers or, where they are too few, those of the run."""
    seen = tuple(Observation(**one) for one in figures["observations"])
    found = session.forecasts.recalibrate(seen)
    figures["calibrations"] = [dataclasses.asdict(one) for one in found]
    if not found:
        report.say("Not calibrated: too few answers. Ask more, or measure without --quick.")
    for one in found:
        weights = ", ".join(
            f"{name.replace('_', ' ')} {value:.0%}" for name, value in dataclasses.asdict(one.weights).items()
        )
        report.say(
            f"Calibrated ({one.profile}) from {one.count} answers: {weights}; {one.mean_total_s:.2f} s on average, "
            f"forecasts off by {one.error:.0%}. It holds when the program is next started."
        )


def _text(action: str, figures: dict[str, Any]) -> str:
    match action:
        case "index":
            return index_text(figures)
        case "generate":
            return generate_text(figures)
        case "ingest":
            return ingest_text(figures)
    return field_text(figures)


@contextmanager
def _ended_like_an_interrupt() -> Iterator[Say]:
    """A service manager and a closed terminal end it as Ctrl-C does: what it made is removed. Gives what tells of each
    step, and ends it there if the signal came while a library was at work that lets no error of ours through."""
    wanted = False

    def on_signal(_signal: int, _frame: object) -> None:
        nonlocal wanted
        wanted = True
        raise KeyboardInterrupt

    def say(text: str) -> None:
        if wanted:
            raise KeyboardInterrupt
        report.say(text)

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, on_signal) for number in signals}
    try:
        yield say
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _check_place(file: Path) -> None:
    """Raises UsageError where no file can be written: before some minutes of measuring, not after."""
    if file.is_dir():
        raise UsageError(f"{file} is a folder.", remedy="Name a file in it.")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise UsageError(f"{file} cannot be written.", remedy="Name a file in a folder that you may write to.")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise storage_error(error, file) from error
    report.say(f"written: {file}")


def _generate(session: Session, arguments: argparse.Namespace, say: Say) -> dict[str, Any]:
    from edgerag.measure.generate import bench_generate, subject_of
    from edgerag.measure.questions import given_questions

    questions = given_questions(Path(arguments.questions), count=arguments.count) if arguments.questions else []
    return bench_generate(
        subject_of(session.catalog, session.settings),
        questions=questions,
        parts=arguments.parts or (_QUICK_PARTS if arguments.quick else ()),
        progress=say,
    )


def _ingest(session: Session, arguments: argparse.Namespace, say: Say) -> dict[str, Any]:
    from edgerag.measure.ingest import QUICK, THOROUGH, bench_ingest

    docs = user_path(arguments.docs) if arguments.docs else session.locations.home / "examples" / "docs"
    if not is_there(docs):
        raise UsageError(f"There is no file or folder {str(docs)!r}.", remedy="Name a folder to ingest: --docs FOLDER")
    return bench_ingest(
        docs,
        model=session.catalog.find("embedder", session.settings.models.embedder),
        effort=QUICK if arguments.quick else THOROUGH,
        reference=user_path(arguments.reference) if arguments.reference else None,
        progress=say,
    )


def _index(session: Session, arguments: argparse.Namespace, say: Say) -> dict[str, Any]:
    budget_bytes = session.budget_bytes()
    try:
        from edgerag.measure.index import bench_index
    except ImportError as error:  # a machine that only searches need not have it
        raise UsageError(f"The bench needs hnswlib to compare with, which is not usable here: {error}.") from error
    if arguments.budget:
        budget_bytes = _size(arguments.budget)
    rows = arguments.rows or (_QUICK_ROWS if arguments.quick and arguments.vectors == "clustered" else None)
    return bench_index(rows=rows, vectors=arguments.vectors, budget_bytes=budget_bytes, progress=say)


def field_text(figures: dict[str, Any]) -> str:
    """The figures of `bench ask`, `embed` and `all` for people."""
    from edgerag.measure.field.run import value_text

    lines = [f"{figures['bench']}: {figures['seconds']:.0f} s, {figures['machine']['processor']}"]
    units = {name: kept["unit"] for name, kept in figures["series"].items()}
    for name, part in figures["parts"].items():
        lines.append(f"{name.replace('_', ' ')}: {part['question']}".rstrip(": "))
        for way, value in part["medians"].items():
            text = value_text(value["median"], units[f"{name}.{way}"])
            lines.append(f"  {way.replace('_', ' '):<24} {text}, ± {value['spread']:.0%}")
        for one in part["comparisons"]:
            times = f"{one['ratio']:.2f} times, {one['low']:.2f} to {one['high']:.2f}"
            lines.append(f"  {one['way']} against {one['to']}: {one['verdict']} ({times})".replace("_", " "))
        lines += [f"  {key.replace('_', ' '):<24} {value}" for key, value in part["figures"].items()]
        lines += [f"  {note}" for note in part["notes"]]
    return "\n".join(lines) + "\n"


def generate_text(figures: dict[str, Any]) -> str:
    """The figures for people; those that were not measured are left out."""
    rows = (
        ("first words, nothing known", "ttft_plain_s", "{:.2f} s, plain llama-cpp-python"),
        ("first words, first passage known", "ttft_exact_s", "{:.2f} s"),
        ("first words, all passages known", "ttft_spliced_s", "{:.2f} s, spliced"),
        ("  as this model was tuned", "ttft_auto_s", "{:.2f} s"),
        ("first words of a second turn", "ttft_turn2_s", "{:.2f} s"),
        ("  plain", "ttft_turn2_plain_s", "{:.2f} s"),
        ("prefill as tuned", "prefill_tps_tuned", "{:.0f} tokens/s"),
        ("prefill as Q4_1 with the binding's defaults", "prefill_tps_default", "{:.0f} tokens/s"),
        ("decode of quotations", "decode_tps_plain", "{:.0f} tokens/s"),
        ("  with lookup", "decode_tps_lookup", "{:.0f} tokens/s"),
        ("cancel, 99 of 100", "cancel_p99_ms", "{:.0f} ms"),
        ("right answers, exact", "accuracy_exact", "{:.1%}"),
        ("right answers, spliced", "accuracy_spliced", "{:.1%}"),
        ("  as this model was tuned", "accuracy_auto", "{:.1%}"),
    )
    known = [(label, form.format(figures[key])) for label, key, form in rows if key in figures]
    lines = [f"{figures['model']}, {figures['threads']} threads"]
    return "\n".join(lines + [f"  {label:<44} {value}" for label, value in known]) + "\n"


def ingest_text(figures: dict[str, Any]) -> str:
    """The figures for people."""
    rows = (
        ("passages embedded", "passages_per_s", "{:.0f}/s"),
        ("  with llama.cpp alone", "llama_passages_per_s", "{:.0f}/s"),
        ("  plain sentence-transformers", "baseline_passages_per_s", "{:.0f}/s"),
        ("  times as fast as that", "ratio", "{:.2f}"),
        ("  with llama.cpp alone", "llama_ratio", "{:.2f}"),
        ("of an ingest not spent on embedding", "overhead_share", "{:.1%}"),
        ("files that did not change", "files_per_s_unchanged", "{:,.0f}/s"),
    )
    known = [(label, form.format(figures[key])) for label, key, form in rows if figures[key] is not None]
    lines = [f"{figures['embedder']}, {figures['backend']}"]
    lines += [f"  {label:<44} {value}" for label, value in known]
    lines += [f"  {'most memory':<44} {output.size(figures['peak_rss_bytes'])}"]
    lines += [f"  {figures['failed']} of {figures['files']} files failed."] if figures["failed"] else []
    return "\n".join(lines + [f"  {note}" for note in figures["notes"]]) + "\n"


def index_text(figures: dict[str, Any]) -> str:
    """The figures for people: a line for each recall, then memory and opening."""
    lines = [
        f"{figures['rows']:,} vectors of {figures['dimension']} dimensions, one core; "
        f"{figures['walk']} against hnswlib with {figures['hnswlib_instructions']}"
    ]
    lines += [
        (
            f"  recall@10 {level['recall']:.3f}: {level['qps']:,.0f} queries/s, hnswlib {level['qps_hnswlib']:,.0f}: "
            f"{level['ratio_qps']:.2f} times; p50 {level['p50_ms']:.2f} ms, p99 {level['p99_ms']:.2f} ms"
        )
        for level in figures["at"]
    ]
    resident = figures["resident_max_bytes"]
    lines += [
        f"  memory: {output.size(figures['rss_bytes'])}, hnswlib {output.size(figures['rss_hnswlib_bytes'])}",
        f"  budget: {output.size(figures['budget_bytes'])}, most resident: "
        + ("not told by this system" if resident is None else output.size(resident)),
        f"  open: {figures['open_ms']:.1f} ms, hnswlib {figures['load_hnswlib_ms']:.0f} ms",
    ]
    return "\n".join(lines) + "\n"


def _size(text: str) -> int:
    try:
        size_bytes = parse_size(text)
    except ValueError as error:
        raise UsageError(f"--budget: {error}.") from error
    if size_bytes < 1:
        raise UsageError("--budget: nothing can be searched in no memory.")
    return size_bytes
