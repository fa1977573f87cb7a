"""Every failure the program can explain, in one tree.

    EdgeragError                      exit code
    ├── UsageError                    2   the request itself is wrong: empty question, unknown path, bad setting
    ├── LibraryError                  3
    │   ├── LibraryMissing                no library of that name yet
    │   ├── LibraryEmpty                  there is nothing in it to be asked
    │   ├── LibraryBusy                   another process is writing to it
    │   │   └── LibraryReplaced               or has encrypted, decrypted or rekeyed it while it was open
    │   ├── LibraryDamaged                a file or block does not match its checksum, or is cut short
    │   ├── LibraryLocked                 encrypted, and what opens it was not given, or is not right
    │   ├── LibraryVersionUnknown         written by another version of the program
    │   │   └── LibraryOutdated           by an older one: opening it for writing brings it up
    │   └── EmbedderMismatch              made with another embedder than the one in use
    ├── ThreadsError                  3   the file of the conversations: damaged, of another version, in use
    ├── TracesError                   3   the file of the traces: of another version, in use; or none that was asked for
    │   └── TracesDamaged                 the file is not what it was: it is set aside, and a new one begun
    ├── ModelError                    4
    │   ├── ModelMissing                  not on this machine
    │   ├── ModelDamaged                  not a GGUF, cut short, or not the file it was
    │   ├── ModelWrongKind                an embedder where a chat model is needed, or the reverse
    │   ├── ModelTooLarge                 does not fit in free memory
    │   └── EngineUnavailable             llama.cpp is not installed or cannot run on this CPU
    ├── DocumentError                 1   one document could not be read; the others go on
    │   ├── DocumentUnsupported           a format nothing here reads
    │   │   └── DocumentTooLarge              for the limit that is set
    │   ├── DocumentEmpty                 no text in it (an empty file)
    │   │   └── DocumentScanned               none but in pictures, or in fonts that do not say their letters
    │   ├── DocumentEncrypted             needs a password
    │   ├── DocumentDamaged               the parser refused it
    │   ├── DocumentGone                  it went while the others were read
    │   ├── DocumentChanged               its file is another one than was read
    │   └── ParserDied                    its parser crashed, hung or ran out of memory
    ├── ProcessorUnfit                4   this processor lacks what a package was compiled for
    ├── StorageFull                   5   the disk is full, or refuses to write
    │   └── OutputRefused                 standard output cannot be written
    ├── BundleError                   6   a bundle: changed, not for this machine, or not to be made for want of wheels
    ├── MemoryShort                   7   the free memory is too little for what was asked
    ├── TooLate                       1   a part of a search was not ready in time; what was is used
    └── Cancelled                   130   the user stopped it

A message says what is wrong, where, and (in ``remedy``) what to do next. Exit code 1 is also the
answer of a run that finished with some documents failed.
"""

from __future__ import annotations

from typing import ClassVar

# Against damage: what can be mended alone, and what cannot.
REPAIR_LIBRARY = "Run `edgerag library repair`: it mends what can be, and names the rest."
RESTORE_LIBRARY = "Restore the library folder from a copy, or delete it and ingest again."


class EdgeragError(Exception):
    """A failure with a sentence for the user.

    ``message`` is one clear sentence; ``remedy`` says what to do next, or is empty.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class UsageError(EdgeragError):
    exit_code = 2


class LibraryError(EdgeragError):
    exit_code = 3


class LibraryMissing(LibraryError):
    pass


class LibraryEmpty(LibraryError):
    pass


class LibraryBusy(LibraryError):
    pass


class LibraryReplaced(LibraryBusy):
    pass


class LibraryDamaged(LibraryError):
    pass


class LibraryLocked(LibraryError):
    pass


class LibraryVersionUnknown(LibraryError):
    pass


class LibraryOutdated(LibraryVersionUnknown):
    pass


class EmbedderMismatch(LibraryError):
    pass


class ThreadsError(EdgeragError):
    exit_code = 3


class TracesError(EdgeragError):
    exit_code = 3


class TracesDamaged(TracesError):
    pass


class ModelError(EdgeragError):
    exit_code = 4


class ModelMissing(ModelError):
    pass


class ModelDamaged(ModelError):
    pass


class ModelWrongKind(ModelError):
    pass


class ModelTooLarge(ModelError):
    pass


class EngineUnavailable(ModelError):
    pass


class ProcessorUnfit(EdgeragError):
    exit_code = 4


class DocumentError(EdgeragError):
    exit_code = 1


class DocumentUnsupported(DocumentError):
    pass


class DocumentTooLarge(DocumentUnsupported):
    pass


class DocumentEmpty(DocumentError):
    pass


class DocumentScanned(DocumentEmpty):
    pass


class DocumentEncrypted(DocumentError):
    pass


class DocumentDamaged(DocumentError):
    pass


class DocumentGone(DocumentError):
    pass


class DocumentChanged(DocumentError):
    pass


class ParserDied(DocumentError):
    pass


class StorageFull(EdgeragError):
    exit_code = 5


class OutputRefused(StorageFull):
    pass


class BundleError(EdgeragError):
    exit_code = 6


class MemoryShort(EdgeragError):
    """In place of a MemoryError, where it reaches the user."""

    exit_code = 7

    def __init__(self) -> None:
        super().__init__(
            "There is too little free memory for this; nothing committed is lost.",
            remedy="Close other programs, or lower memory.budget and generation.context_tokens, and run it again.",
        )


class TooLate(EdgeragError):
    """Never reaches the user: a note says so."""

    def __init__(self) -> None:
        super().__init__("It was not ready in time.")


class Cancelled(EdgeragError):
    exit_code = 130
