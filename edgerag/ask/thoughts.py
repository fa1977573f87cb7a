"""What a reasoning model thinks before it answers is told apart from the answer.

Models mark their thoughts with tags, each family with its own; some chat templates open the thought
themselves, so that the model writes only the closing tag. Thoughts come before the answer: a tag in the
middle of one is text, so that an answer may speak of ``<think>``. Works on pieces, however they are cut.
"""

from __future__ import annotations

import re
from typing import Literal

# Opening and closing tag, as the models write them in text.
_TAGS = {
    "<think>": "</think>",  # DeepSeek-R1, Qwen3, QwQ, SmolLM3
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",  # Granite
    "<|begin_of_thought|>": "<|end_of_thought|>",  # OpenThinker
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "[think]": "[/think]",  # Magistral
    "◁think▷": "◁/think▷",  # Kimi
}
_OPENED = re.compile(rf"({'|'.join(map(re.escape, _TAGS))})\s*\Z", re.IGNORECASE)


class ThoughtFilter:
    """Takes the model's text piece by piece and gives the answer and the thoughts apart.

    ``opening`` is what the chat format wrote before the reply: a tag at its end has opened a thought.
    """

    def __init__(self, *, opening: str = "") -> None:
        match = _OPENED.search(opening)
        self._closing = _TAGS[match[1].casefold()] if match else ""
        self._state: Literal["before", "thought", "answer"] = "thought" if match else "before"
        self._held = ""  # white space before the answer, and what may become a tag

    @property
    def thinking(self) -> bool:
        """Whether a thought is open: what comes next belongs to it."""
        return self._state == "thought"

    def feed(self, piece: str) -> tuple[str, str]:
        """The next text of the answer, and of the thoughts."""
        text, self._held = self._held + piece, ""
        answer = thought = ""
        while text:
            match self._state:
                case "before":
                    text = self._before(text)
                case "thought":
                    told, text = self._in_thought(text)
                    thought += told
                case "answer":
                    answer, text = text, ""
        return answer, thought

    def finish(self) -> tuple[str, str]:
        """What was held back and became no tag."""
        held, self._held = self._held, ""
        return ("", held) if self.thinking else (held, "")

    def _before(self, text: str) -> str:
        """What is left to read once it is known what the reply begins with; "" while it is not."""
        begun = text.lstrip()
        folded = begun.casefold()
        for opening, closing in _TAGS.items():
            if folded.startswith(opening):
                self._state, self._closing = "thought", closing
                return begun[len(opening) :]
            if opening.startswith(folded):  # of nothing too
                self._held = text
        if self._held:
            return ""
        self._state = "answer"
        return text

    def _in_thought(self, text: str) -> tuple[str, str]:
        """The thought up to its closing tag or what may become one, and what follows the tag."""
        tag = self._closing
        if match := re.search(re.escape(tag), text, re.IGNORECASE):
            self._state = "before"  # some models think again
            return text[: match.start()], text[match.end() :]
        longest = min(len(tag) - 1, len(text))
        begun = next((n for n in range(longest, 0, -1) if text[-n:].casefold() == tag[:n]), 0)
        keep = len(text) - begun
        self._held = text[keep:]
        return text[:keep], ""
