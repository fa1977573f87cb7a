"""Where the model's answer ends, though the model goes on: at a caption of the prompt.

A small model that has answered may ask itself a question of its own, in the form in which it was asked.
"""

from __future__ import annotations

import re

QUESTION = "Question: "
BEST_WORDS = "Most relevant: "

_CAPTIONS = (QUESTION.strip(), BEST_WORDS.strip())
_CAPTION = re.compile(rf"\n\s*(?:{'|'.join(map(re.escape, _CAPTIONS))})")
_BEGUN = re.compile(r"\n\s*([^\n]*)$")


class CaptionStop:
    """Passes text on until a line begins with a caption; holds back only what may become one."""

    def __init__(self) -> None:
        self.reached = False
        self._held = ""

    def feed(self, piece: str) -> str:
        """The next text that is surely part of the answer; nothing once a caption was reached."""
        if self.reached:
            return ""
        text = self._held + piece
        if match := _CAPTION.search(text):
            self.reached = True
            self._held = ""
            return text[: match.start()]
        begun = _BEGUN.search(text)
        end = begun.start() if begun and any(caption.startswith(begun[1]) for caption in _CAPTIONS) else len(text)
        self._held = text[end:]
        return text[:end]

    def finish(self) -> str:
        """What was held back and became no caption."""
        held, self._held = self._held, ""
        return held
