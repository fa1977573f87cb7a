"""The commands: each opens a session, renders what comes out of it, and gives an exit code."""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from edgerag.config import NO_COLOUR_VARIABLE
from edgerag.errors import ModelError, UsageError
from edgerag.locations import locate, user_path
from edgerag.session import Session
from edgerag.settings.effective import SettingsSources
from edgerag.types import AnswerDone, Filter, LockedLibrary
from edgerag.ui import output, report
from edgerag.ui.asking import AnswerPrinter
from edgerag.ui.filtering import make_filter
from edgerag.ui.passphrase import asking_passphrase
from edgerag.ui.plain_prompt import run_plain_prompt, shows_lines_only

# A question longer than this is a mistake (a file piped by accident), and would only be cut.
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LONGEST_INPUT = 1_000_000
_ASK_SEVERAL = (None, "ask", "search")  # commands that take several libraries
# Commands, and actions of `library`, that need the key of the library in use.
_READ_THE_LIBRARY = frozenset({"ingest", "ask", "search", "remove", "tag", "backup", "repair", "compact", "reembed"})


def run(arguments: argparse.Namespace) -> int:
    """Runs the parsed command. Raises EdgeragError."""
    if arguments.no_color:
        os.environ[NO_COLOUR_VARIABLE] = "1"  # for all that writes to the terminal
    if arguments.command == "config":
        from edgerag.ui.config_command import run_config

        return run_config(settings_sources(arguments), arguments)
    if arguments.command == "plot":
        from edgerag.ui.plot_command import run_plot

        return run_plot(arguments)
    if arguments.command == "doctor" and arguments.offline_proof:
        from edgerag.ui.offline_command import run_proof

        return run_proof(settings_sources(arguments), arguments)
    with open_session(arguments) as session:
        if arguments.command in _READ_THE_LIBRARY or getattr(arguments, "action", "") in _READ_THE_LIBRARY:
            session.unlock()  # before there is a progress bar, too
        match arguments.command:
            case None:
                return _open_ui(session, settings_sources(arguments))
            case "ingest":
                return _ingest(session, arguments)
            case "ask":
                return _ask(session, arguments)
            case "search":
                return _search(session, arguments)
            case "status":
                return _status(session, arguments)
            case "remove":
                return _remove(session, arguments)
            case "tag":
                return _tag(session, arguments)
            case "library":
                return _library(session, arguments)
            case "doctor":
                return _doctor(session, arguments)
            case "bench":
                from edgerag.ui.bench_command import run_bench

                return run_bench(session, arguments)
            case "eval":
                return _eval(session, arguments)
            case "trace":
                from edgerag.ui.trace_command import run_trace

                return run_trace(session, arguments)
            case "threads":
                from edgerag.ui.threads_command import run_threads

                return run_threads(session, arguments)
            case "bundle":
                from edgerag.ui.bundle_command import run_bundle

                return run_bundle(session, arguments)
            case "models":
                return _models(session, arguments)
            case command:
                raise AssertionError(f"the parser let {command!r} through")


def open_session(arguments: argparse.Namespace) -> Session:
    """The session that flags, environment and config.toml describe."""
    session = Session(settings_sources(arguments).load(), locate(os.environ), ask_passphrase=asking_passphrase())
    if not getattr(arguments, "quiet", False):
        session.upgrading.told = report.Upgrade()
    return session


def settings_sources(arguments: argparse.Namespace) -> SettingsSources:
    """What the settings of this command are read from. Raises UsageError."""
    flags: dict[str, dict[str, Any]] = {}
    if arguments.library:
        name, *also = arguments.library
        if also and arguments.command not in _ASK_SEVERAL:
            raise UsageError(
                f"`{arguments.command}` takes one library, not {len(arguments.library)}.",
                remedy="Name one with --library; `ask`, `search` and the terminal UI take several.",
            )
        flags["library"] = {"name": name, "also": also}
    if arguments.key_file:
        flags.setdefault("library", {})["key_file"] = arguments.key_file
    if getattr(arguments, "chat", None):
        flags["models"] = {"chat": arguments.chat}
    if getattr(arguments, "seed", None) is not None:
        flags["generation"] = {"seed": arguments.seed}
    if arguments.command == "ingest":
        from edgerag.ui.ingest_command import ingest_flags

        flags["ingest"] = ingest_flags(arguments)
    if getattr(arguments, "trace_content", False):
        flags["trace"] = {"content": True}
    if getattr(arguments, "no_llm", False):
        flags.setdefault("generation", {})["mode"] = "instant"
    if arguments.no_color:
        flags["ui"] = {"theme": "no-colour"}
    return SettingsSources(locate(os.environ).config_file, dict(os.environ), flags)


def _open_ui(session: Session, sources: SettingsSources) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("The terminal UI needs a terminal.", remedy="Name a command: see `edgerag --help`.")
    if not sys.stderr.isatty():  # it is drawn there
        raise UsageError(
            "The terminal UI is drawn on standard error, which is no terminal here.",
            remedy="Start it without `2>`; a command's messages can be sent to a file.",
        )
    if shows_lines_only(os.environ.get("TERM", "")):
        session.unlock_all()
        return run_plain_prompt(lambda question: _answer(session, question, None, json=False, why=False))
    from edgerag.ui.tui.app import run as run_app

    session.unlock_all()  # passphrases are typed before the screen belongs to the program
    session.upgrading.told = None  # it shows that itself
    return run_app(session, sources)


def _ingest(session: Session, arguments: argparse.Namespace) -> int:
    from edgerag.ui.ingest_command import run_ingest

    with _interruptible(session) as stop:
        return run_ingest(session, arguments, stop)


def _ask(session: Session, arguments: argparse.Namespace) -> int:
    question = _text_argument(arguments.question)
    return _answer(session, question, _filter(arguments), json=arguments.json, why=arguments.why)


def _answer(session: Session, question: str, where: Filter | None, *, json: bool, why: bool) -> int:
    answer = None
    printer = None if json else AnswerPrinter()
    with _interruptible(session) as stop:
        for event in session.ask(question, where=where, cancelled=stop.is_set):
            if isinstance(event, AnswerDone):
                answer = event.answer
            elif printer is not None:
                printer.show(event)
    assert answer is not None, "every question ends with its answer"
    if printer is None:
        record = dict(output.answer_record(answer))
        if why and answer.trace is not None:
            from edgerag.ui.why.record import trace_record

            record["trace"] = trace_record(answer.trace)
        output.write_json(record)
    else:
        printer.finish()
        if answer.sources:
            output.write(output.sources_text(answer.sources))
        if answer.nearest:
            output.write(output.nearest_text(answer.nearest))
        if why:
            from edgerag.ui.why.text import why_text

            output.write(why_text(answer))
    for note in answer.notes:
        report.say(f"note: {note}")
    report.unsupported_sentences(answer)
    report.say(report.timings_line(answer))
    for trouble in session.trace_troubles():
        report.say(f"note: {trouble}")
    if answer.stop_reason == "no_model":
        return ModelError.exit_code
    if answer.stop_reason == "cancelled":
        return report.EXIT_INTERRUPTED
    return report.EXIT_SOME_FAILED if session.not_asked() else report.EXIT_OK


def _search(session: Session, arguments: argparse.Namespace) -> int:
    query = _text_argument(arguments.query)
    result = session.search(query, limit=arguments.limit, where=_filter(arguments))
    if arguments.json:
        hits = [output.hit_record(hit) for hit in result.hits]
        output.write_json({"query": query, "hits": hits, "notes": list(result.notes)})
    elif result.hits:
        output.write(output.hits_text(result.hits))
    else:
        report.say("Nothing found.")
    for note in result.notes:
        report.say(f"note: {note}")
    return report.EXIT_SOME_FAILED if session.not_asked() else report.EXIT_OK


def _status(session: Session, arguments: argparse.Namespace) -> int:
    if not (arguments.files or arguments.blocks or arguments.verify):
        locked = session.locked_library()
        if locked is not None:
            return _locked_status(locked, json=arguments.json)
    status = session.library_status()
    documents = session.documents() if arguments.files and status else []
    failures = session.failures() if arguments.files and status else []
    left_out = session.left_out() if arguments.files and status else []
    blocks = session.library_blocks() if arguments.blocks and status else []
    findings = session.verify_library() if arguments.verify and status else []
    if arguments.json:
        value: dict[str, Any] = {"library": None if status is None else dataclasses.asdict(status)}
        if arguments.files:
            value["documents"] = [output.document_record(document) for document in documents]
            value["failed"] = [dataclasses.asdict(failure) for failure in failures]
            value["skipped"] = [dataclasses.asdict(found) for found in left_out]
        if arguments.blocks:
            value["blocks"] = [dataclasses.asdict(segment) for segment in blocks]
        if arguments.verify:
            value["findings"] = [dataclasses.asdict(finding) for finding in findings]
        output.write_json(value)
    elif status is None:
        report.say(f"There is no library {session.settings.library.name!r} yet. {session.making_hint()}")
    else:
        output.write(output.status_text(status))
        output.write(output.files_text(documents, failures, left_out))
        output.write(output.blocks_text(blocks))
        output.write(output.findings_text(findings))
    return _worst(findings)


def _locked_status(locked: LockedLibrary, *, json: bool) -> int:
    """What can be said without the key, which nobody is asked for here."""
    if json:
        output.write_json({"library": None, "encrypted": dataclasses.asdict(locked)})
    else:
        output.write(output.locked_text(locked))
    return report.EXIT_OK


def _remove(session: Session, arguments: argparse.Namespace) -> int:
    removed = session.remove(arguments.paths)
    if arguments.json:
        output.write_json({"removed": [dataclasses.asdict(document) for document in removed]})
    report.say(f"{len(removed)} documents removed from the library; the files themselves are untouched.")
    troubles = session.state_troubles()
    for trouble in troubles:
        report.say(f"warning: {trouble}")
    return report.EXIT_SOME_FAILED if troubles else report.EXIT_OK


def _tag(session: Session, arguments: argparse.Namespace) -> int:
    if not arguments.add and not arguments.remove:
        raise UsageError("No tag is named.", remedy="Give one with --add NAME, or take one away with --remove NAME.")
    documents = session.tag(arguments.paths, add=arguments.add, remove=arguments.remove)
    if arguments.json:
        output.write_json({"documents": [dataclasses.asdict(document) for document in documents]})
    else:
        output.write(output.documents_text(documents))
    return report.EXIT_OK


def _library(session: Session, arguments: argparse.Namespace) -> int:
    from edgerag.ui import library_commands

    match arguments.action:
        case "verify":
            return library_commands.verify(session, arguments)
        case "repair" | "export" | "import" | "backup":
            from edgerag.ui import travel_commands

            return travel_commands.COMMANDS[arguments.action](session, arguments)
        case "encrypt" | "decrypt" | "rekey":
            from edgerag.ui import encryption_commands

            return encryption_commands.COMMANDS[arguments.action](session, arguments)
    with _interruptible(session) as stop:
        if arguments.action == "reembed":
            return library_commands.reembed(session, arguments, stop)
        return library_commands.compact(session, arguments, stop)


def _doctor(session: Session, arguments: argparse.Namespace) -> int:
    findings, suggestions = session.diagnose(), session.suggestions()
    if arguments.json:
        output.write_json(output.doctor_record(findings, suggestions))
    else:
        output.write(output.findings_text(findings))
        output.write(output.suggestions_text(suggestions))
    return _worst(findings)


def _eval(session: Session, arguments: argparse.Namespace) -> int:
    from edgerag.ui.eval_command import run_eval

    with _interruptible(session) as stop:
        return run_eval(session, arguments, stop)


def _models(session: Session, arguments: argparse.Namespace) -> int:
    catalog = session.catalog
    match arguments.action:
        case "list":
            entries = catalog.entries()
            if arguments.json:
                output.write_json({"models": [_entry_record(entry) for entry in entries]})
            else:
                output.write(output.models_text(entries))
        case "recommend":
            from edgerag.ui.recommend_command import run_recommend

            return run_recommend(session, arguments)
        case "pull":
            from edgerag.engine.pull import pull

            for model in pull(catalog, arguments.names, report=report.say):
                report.say(f"{model.name}: ready, {output.size(model.size_bytes)}.")
        case "add":
            model = catalog.add(user_path(arguments.path), name=arguments.name)
            report.say(f"{model.name}: added as {model.kind} model, {output.size(model.size_bytes)}.")
        case "tune":
            from edgerag.ui.tune_command import run_tune

            with _interruptible(session) as stop:
                return run_tune(session, arguments, stop.is_set)
        case "verify":
            findings = catalog.verify(arguments.names)
            if arguments.json:
                output.write_json({"findings": [dataclasses.asdict(finding) for finding in findings]})
            else:
                output.write(output.findings_text(findings))
            return 4 if any(finding.severity == "error" for finding in findings) else report.EXIT_OK
        case action:
            raise AssertionError(f"the parser let {action!r} through")
    return report.EXIT_OK


def _entry_record(entry: Any) -> dict[str, Any]:
    return {**dataclasses.asdict(entry), "path": None if entry.path is None else str(entry.path)}


def _worst(findings: list[Any]) -> int:
    return report.EXIT_SOME_FAILED if any(finding.severity == "error" for finding in findings) else report.EXIT_OK


def _filter(arguments: argparse.Namespace) -> Filter | None:
    """What --in, --tag, --lang, --type, --since and --until ask for; None when they are not given."""
    return make_filter(
        inside=arguments.inside,
        tags=arguments.tag,
        languages=_listed(arguments.lang),
        types=_listed(arguments.types),
        since=arguments.since,
        until=arguments.until,
    )


def _listed(values: Sequence[str]) -> list[str]:
    """What stands between commas; a comma too many is overlooked, an option without a word is not."""
    listed: list[str] = []
    for value in values:
        listed += list(filter(None, map(str.strip, value.split(",")))) or [""]
    return listed


def _text_argument(text: str) -> str:
    """The argument itself, or standard input for '-'."""
    if text != "-":
        return text
    piped = sys.stdin.buffer.read(_LONGEST_INPUT + 1)
    if len(piped) > _LONGEST_INPUT:
        raise UsageError(f"Standard input holds more than {_LONGEST_INPUT:,} bytes: too long for a question.")
    return piped.decode("utf-8", errors="replace")


@contextmanager
def _interruptible(session: Session) -> Iterator[threading.Event]:
    """The first Ctrl-C asks the work to stop after what is at hand; the second one stops it now."""
    stop = threading.Event()

    def on_interrupt(_signal: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        report.say("\nStopping; what is done is kept. (Ctrl-C again stops at once.)")

    # A service manager and a closed terminal ask as Ctrl-C does.
    previous = {number: signal.signal(number, on_interrupt) for number in _STOP_SIGNALS}
    try:
        with session.upgrading.until(stop.is_set):
            yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
