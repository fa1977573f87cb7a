"""Which OCR this ingest has, and what of the library it would read in another way than it was read.

A document keeps the mode and the languages of the OCR that was at hand for it. What is asked for on the command line is
done to what is there, once; settings that changed are not, but for ``force``: else two ways of starting the program
would each read every scan anew in turn.
"""

from __future__ import annotations

from functools import cached_property

from edgerag.config import IngestSettings
from edgerag.ingest.parse.ocr import Recogniser, find_recogniser, is_recognisable
from edgerag.types import Document


class Recognition:
    """``again``: it was asked for, so that documents of another manner are to be read again."""

    def __init__(self, settings: IngestSettings, *, again: bool) -> None:
        self._settings = settings
        self._again = again

    @cached_property
    def recogniser(self) -> Recogniser | None:
        """Raises UsageError where it must be had and is not."""
        return find_recogniser(
            self._settings.ocr,
            self._settings.ocr_languages,
            deadline_s=self._settings.parse_deadline_s,
            memory_bytes=self._settings.parse_memory,
        )

    def manner(self, media_type: str) -> str:
        """Which OCR is at hand for a document of that type."""
        if not is_recognisable(media_type) or self.recogniser is None:
            return ""
        return self.recogniser.manner

    @property
    def may_read_again(self) -> bool:
        """Whether anything is."""
        return self._again or self._settings.ocr == "force"

    def reads_otherwise(self, document: Document) -> bool:
        """Whether it is to be read again, though it did not change."""
        if not self.may_read_again:
            return False
        if not is_recognisable(document.media_type) or self.recogniser is None:
            return False
        if self._again:
            return document.ocr != self.recogniser.manner
        return document.ocr.split(" ")[0] != self.recogniser.mode
