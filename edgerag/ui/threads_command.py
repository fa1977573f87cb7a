"""``edgerag threads``: the conversations of the terminal UI, listed, read, found, named, deleted, exported."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from edgerag.errors import UsageError
from edgerag.locations import user_path
from edgerag.session import Session
from edgerag.types import Thread, ThreadHead
from edgerag.ui import output, report
from edgerag.ui.export.json import head_record, thread_record
from edgerag.ui.export.said import doubts, ending, filter_words, state_words, when, where_words
from edgerag.ui.export.sources import sources_now
from edgerag.ui.plain import one_line, plain
from edgerag.ui.plain_marks import foreign_words, marked_text, passage_words
from edgerag.ui.source_marks import marks_of_exchange

if TYPE_CHECKING:
    from edgerag.threads.store import ThreadStore

_TITLE_WIDTH = 80
_QUOTE_WIDTH = 300
_NAMED_IN_QUESTION = 10


def run_threads(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    store = session.threads_if_any()
    library = None if getattr(arguments, "all", False) else session.settings.library.name
    match arguments.action:
        case "list":
            return _list(store, library, json=arguments.json)
        case "search":
            return _search(store, library, arguments.words, json=arguments.json)
        case "show":
            return _show(session, store.thread(arguments.thread), json=arguments.json)
        case "rename":
            head = store.rename(arguments.thread, arguments.title)
            report.say(f"Thread {head.id} is now called {head.title!r}.")
        case "delete":
            return _delete(store, arguments.threads, sure=arguments.yes)
        case "export":
            return _export(session, store.thread(arguments.thread), arguments)
        case action:
            raise AssertionError(f"the parser let {action!r} through")
    return report.EXIT_OK


def _list(store: ThreadStore, library: str | None, *, json: bool) -> int:
    heads = store.heads(library=library)
    if json:
        output.write_json({"threads": [head_record(head) for head in heads]})
    elif heads:
        output.write(output.table([_row(head, with_library=library is None) for head in heads]))
    else:
        report.say("There are no conversations yet: the terminal UI keeps what is asked there.")
    return report.EXIT_OK


def _row(head: ThreadHead, *, with_library: bool) -> Sequence[str]:
    count = f"{head.question_count} question{'' if head.question_count == 1 else 's'}"
    row = (f"{head.id}", when(head.changed_ns), count, one_line(head.title, _TITLE_WIDTH))
    return (*row, head.library) if with_library else row


def _search(store: ThreadStore, library: str | None, words: str, *, json: bool) -> int:
    matches = store.search(words, library=library)
    if json:
        records = [{**head_record(match.head), "excerpt": match.excerpt} for match in matches]
        output.write_json({"query": words, "threads": records})
    elif matches:
        for match in matches:
            output.write(output.table([_row(match.head, with_library=library is None)]))
            if match.excerpt:
                output.write(f"    {one_line(match.excerpt, _QUOTE_WIDTH)}\n")
    else:
        report.say("Nothing found.")
    return report.EXIT_OK


def _show(session: Session, thread: Thread, *, json: bool) -> int:
    found = sources_now(session, thread)
    if json:
        output.write_json(thread_record(thread, found))
        return report.EXIT_OK
    output.write(f"{plain(thread.head.title)}\n")
    for exchange in thread.exchanges:
        version = f", version {exchange.version} of {exchange.versions}" if exchange.versions > 1 else ""
        where = filter_words(exchange.where)
        output.write(f"\n> {plain(exchange.question)}\n  ({when(exchange.asked_ns)}{version})\n")
        if where:
            output.write(f"  asked only of: {plain(where)}\n")
        text = marked_text(plain(exchange.text), marks_of_exchange(exchange))
        output.write(f"\n{text}\n" if text else "")
        output.write(f"({plain(ending(exchange))})\n" if ending(exchange) else "")
        for words, reason in doubts(exchange):
            output.write(f"[?] not in the sources: “{foreign_words(one_line(words, _QUOTE_WIDTH))}” {plain(reason)}\n")
        for each in found.get(exchange.id, ()):
            mark = "*" if each.source.cited else " "
            state = f" ({state_words(each)})" if state_words(each) else ""
            output.write(f"{mark}[{each.source.number}] {one_line(where_words(each), _QUOTE_WIDTH)}{state}\n")
            quote = one_line(each.source.quote, _QUOTE_WIDTH)
            output.write(f'      "{passage_words(quote, each.source.hit.chunk.media_type)}"\n')
    return report.EXIT_OK


def _delete(store: ThreadStore, thread_ids: Sequence[int], *, sure: bool) -> int:
    heads = [store.head(thread_id) for thread_id in thread_ids]
    if not sure:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError("Nobody can be asked whether to delete them.", remedy="Give --yes if you are sure.")
        for head in heads[:_NAMED_IN_QUESTION]:
            report.say(f"  {head.id}  {one_line(head.title, _TITLE_WIDTH)}")
        if len(heads) > _NAMED_IN_QUESTION:
            report.say(f"  and {len(heads) - _NAMED_IN_QUESTION} more")
        report.say("Delete for good? Type yes:")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            report.say("Nothing is deleted.")
            return report.EXIT_INTERRUPTED
    gone = store.delete(thread_ids)
    report.say(f"{len(gone)} {'thread' if len(gone) == 1 else 'threads'} deleted.")
    return report.EXIT_OK


def _export(session: Session, thread: Thread, arguments: argparse.Namespace) -> int:
    from edgerag.ui.export import export, format_of, write_new

    path = user_path(arguments.out) if arguments.out else None
    form = arguments.format or (format_of(path) if path is not None else "markdown")
    text = export(thread, sources_now(session, thread), form=form)
    if path is None:
        output.write(text)
    else:
        write_new(path, text)
        report.say(f"{path} written.")
    return report.EXIT_OK
