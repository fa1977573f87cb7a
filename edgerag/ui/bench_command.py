"""``edgerag bench``: measures the program on this machine, and says how it stands beside its peers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgerag.config import parse_size
from edgerag.errors import UsageError
from edgerag.locations import is_there, user_path
from edgerag.ui import output, report

if TYPE_CHECKING:
    from edgerag.session import Session


def run_bench(session: Session, arguments: argparse.Namespace) -> int:
    """Raises UsageError, ModelError."""
    if arguments.action == "ingest":
        return _ingest(session, arguments)
    return _generate(session, arguments) if arguments.action == "generate" else _index(session, arguments)


def _generate(session: Session, arguments: argparse.Namespace) -> int:
    from edgerag.measure.generate import bench_generate, subject_of
    from edgerag.measure.questions import given_questions

    questions = given_questions(Path(arguments.questions), count=arguments.count) if arguments.questions else []
    figures = bench_generate(
        subject_of(session.catalog, session.settings),
        questions=questions,
        parts=arguments.parts,
        progress=report.say,
    )
    output.write_json(figures) if arguments.json else output.write(generate_text(figures))
    return report.EXIT_OK


def _ingest(session: Session, arguments: argparse.Namespace) -> int:
    from edgerag.measure.ingest import QUICK, THOROUGH, bench_ingest

    docs = user_path(arguments.docs) if arguments.docs else session.locations.home / "examples" / "docs"
    if not is_there(docs):
        raise UsageError(f"There is no file or folder {str(docs)!r}.", remedy="Name a folder to ingest: --docs FOLDER")
    figures = bench_ingest(
        docs,
        model=session.catalog.find("embedder", session.settings.models.embedder),
        effort=QUICK if arguments.quick else THOROUGH,
        reference=user_path(arguments.reference) if arguments.reference else None,
        progress=report.say,
    )
    output.write_json(figures) if arguments.json else output.write(ingest_text(figures))
    return report.EXIT_OK


def _index(session: Session, arguments: argparse.Namespace) -> int:
    budget_bytes = session.budget_bytes()
    try:
        from edgerag.measure.index import bench_index
    except ImportError as error:  # a machine that only searches need not have it
        raise UsageError(f"The bench needs hnswlib to compare with, which is not usable here: {error}.") from error
    if arguments.budget:
        budget_bytes = _size(arguments.budget)
    figures = bench_index(
        rows=arguments.rows, vectors=arguments.vectors, budget_bytes=budget_bytes, progress=report.say
    )
    if arguments.json:
        output.write_json(figures)
    else:
        output.write(index_text(figures))
    return report.EXIT_OK


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
