"""``edgerag library encrypt``, ``decrypt`` and ``rekey``: who can read a library without edgerag, and with it."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from edgerag.encryption.key_record import FILE_NAME
from edgerag.encryption.keys import checked_new_passphrase, read_key_file
from edgerag.errors import UsageError
from edgerag.locations import is_there, user_path
from edgerag.session import Session
from edgerag.session.encrypting import NewOpener
from edgerag.session.new_key_file import NewKeyFile
from edgerag.ui import output, report
from edgerag.ui.passphrase import new_passphrase

LOST = "Whoever loses it loses the library: nobody can bring it back."


def encrypt(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    session.check_can_encrypt(arguments.name)
    opener = _new_opener(arguments)
    with report.progress_bar(quiet=arguments.quiet) as bar:
        done = session.encrypt_library(arguments.name, opener, progress=bar.show_bytes)
    _say_made(opener)
    if arguments.json:
        output.write_json({"name": arguments.name, "encrypted": None if done is None else dataclasses.asdict(done)})
    if done is None:
        report.say(
            f"Library {arguments.name} is to be: everything will be encrypted from its first document on. {LOST}"
        )
        return report.EXIT_OK
    holds = f"{done.document_count:,} documents, {output.size(done.size_bytes)}"
    folder = session.locations.library_folder(arguments.name)
    report.say(f"Library {arguments.name} ({folder}) is encrypted: {holds}. {LOST}")
    report.say(
        "note: the plain files were deleted, not wiped: who examines the disk may find them, or an older backup."
        " Conversations and traces that were kept until now stay readable in the home."
    )
    return report.EXIT_OK


def decrypt(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    with report.progress_bar(quiet=arguments.quiet) as bar:
        done = session.decrypt_library(arguments.name, progress=bar.show_bytes)
    if arguments.json:
        output.write_json({"name": arguments.name, "encrypted": None})
    report.say(
        f"Library {arguments.name} is not encrypted any more: {done.document_count:,} documents,"
        f" {output.size(done.size_bytes)}. Anybody who can read its files can read them."
    )
    return report.EXIT_OK


def rekey(session: Session, arguments: argparse.Namespace) -> int:
    """Raises EdgeragError."""
    session.open_key(arguments.name)  # whoever does not know the old one is not asked for a new one
    opener = _new_opener(arguments)
    if not arguments.anew:
        session.change_opener(arguments.name, opener)
        _say_made(opener)
        report.say(
            f"Library {arguments.name} is opened by the new one from now on; its files are as they were. Who has an old"
            f" copy of library.key and what opened it can still read them: --anew encrypts them under a new key. {LOST}"
        )
        done = None
    else:
        with report.progress_bar(quiet=arguments.quiet) as bar:
            done = session.encrypt_library_anew(arguments.name, opener, progress=bar.show_bytes)
        _say_made(opener)
        report.say(f"Library {arguments.name} is encrypted under a new key: {output.size(done.size_bytes)}. {LOST}")
    if arguments.json:
        output.write_json({"name": arguments.name, "encrypted": None if done is None else dataclasses.asdict(done)})
    return report.EXIT_OK


def _new_opener(arguments: argparse.Namespace) -> NewOpener:
    """What the library is to be opened by. Raises UsageError, LibraryLocked, StorageFull."""
    if not arguments.new_key_file:
        return checked_new_passphrase(new_passphrase(arguments.name))
    path: Path = user_path(arguments.new_key_file)
    if (library := _library_around(path)) is not None:
        raise UsageError(
            f"The key file {path} would lie in the library {library}, and go with it.",
            remedy="Keep it where the library is not: on a stick, say.",
        )
    if is_there(path):
        return read_key_file(path)
    return NewKeyFile(path)


def _say_made(opener: NewOpener) -> None:
    if isinstance(opener, NewKeyFile):
        report.say(f"{opener.path} was made: keep a copy of it where the library is not.")


def _library_around(path: Path) -> Path | None:
    """The folder of a library that a file lies in, or would lie in."""
    own = ("library.sqlite", FILE_NAME)
    return next((folder for folder in path.resolve().parents if any(is_there(folder / name) for name in own)), None)


COMMANDS: Mapping[str, Callable[[Session, argparse.Namespace], int]] = {
    "encrypt": encrypt,
    "decrypt": decrypt,
    "rekey": rekey,
}
