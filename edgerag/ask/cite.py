"""The model's words become the answer: checked marks, attributed sentences, nothing hidden.

:class:`CitationFilter` works one character at a time, so that the answer does not depend on how the
model's text was cut into pieces, and holds back only what it cannot decide yet: a bracket that may
become a mark, the end of a sentence, a sentence that so far repeats an earlier one, the first words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from edgerag.ask.captions import QUESTION
from edgerag.ask.marks import is_copied, is_index, parse_marks
from edgerag.ask.support import SupportFinder
from edgerag.ask.words import content_words, ends_with_abbreviation
from edgerag.types import Source

_OPEN, _CLOSE = "[【", "]】"
_MARK_CHARACTERS = re.compile(r"[\w\s,;&#.:–—-]")
_LONGEST_COMPARED = 2_000  # characters of a sentence that may turn out to repeat another
_LONGEST_MARK = 40
_LONGEST_INLINE_CODE = 200
_FIRST_CHARACTERS = 32  # held until it is clear that the answer is more than one word over and over
_ENDERS = ".!?。！？…؟।"
_FULL_WIDTH_ENDERS = "。！？।"
_CLOSERS = "\"'”’»)」』）*_"
# A repeated sentence of fewer letters than this may be meant: "Yes", a row of a list.
_SHORTEST_REPEAT = 12
# Models copy the line breaks of their sources. A line at least this long that ends without a full stop
# is taken to go on in the next.
_SHORTEST_WRAPPED_LINE = 50
_BLOCK_STARTS = "-*+#>|"
_LIST_MARKER = re.compile(r"^\s*(?:[-*+>]|\d+[.)])\s+")


class CitationFilter:
    """Turns the model's text into the answer's text, piece by piece.

    ``feed`` gives the text to show for the next piece, ``finish`` the rest; joined they are the
    answer. ``question`` is what was asked: a model that only says it again says nothing. ``marks``: the
    number of the source for each number of a passage in the prompt; without it they are the same.
    """

    def __init__(
        self, sources: Sequence[Source], *, question: str = "", marks: Mapping[int, int] | None = None
    ) -> None:
        self._known = {source.number: source.number for source in sources} if marks is None else dict(marks)
        self._support = SupportFinder(sources, question=question)
        self._texts = tuple(source.hit.chunk.chunk.text for source in sources)
        self._cited: set[int] = set()
        # What the model reads last it likes to say again: the question, and its caption in the prompt.
        self._sentences_seen: list[str] = [_key(question), _key(f"{QUESTION}{question}")] if _key(question) else []
        self._repeats = 0
        self._sentences_shown = 0
        self._out: list[str] = []
        # Reading: "prose", "bracket", "closed" (a bracket is complete, a link may follow), "ticks",
        # "address", "code", "fence"; ``_buffer`` holds what the state has collected.
        self._state = "prose"
        self._buffer = ""
        self._ticks = 0
        self._line = ""  # of the text so far, for what must stand at its beginning
        # The sentence at work: its words without marks, its text as it will be shown, and its end.
        self._words = ""
        self._held = ""
        self._end = ""  # full stop and closing quotes, held until it is known that they end it
        self._space = ""
        self._marks: tuple[int, ...] = ()
        self._marked = False
        self._mark_dropped = False
        self._shown_characters = 0

    # ------------------------------------------------------------ what it tells

    @property
    def cited(self) -> frozenset[int]:
        """Numbers of the sources that the text so far rests on."""
        return frozenset(self._cited)

    @property
    def repeats(self) -> int:
        """Sentences in a row that only said an earlier one again, and were left out."""
        return self._repeats

    @property
    def sentences_shown(self) -> int:
        """Whole sentences shown so far."""
        return self._sentences_shown

    # ------------------------------------------------------------ feeding

    def feed(self, delta: str) -> str:
        for character in delta:
            self._read(character)
        return self._take()

    def finish(self) -> str:
        """The rest. Nothing may be fed after it."""
        self._settle_reading()
        self._close_sentence()
        self._space = ""
        return self._take()

    def abandon(self) -> str:
        """Like ``finish``, for a model that was stopped while it repeated itself: what is held back
        is not shown."""
        self._state, self._buffer = "prose", ""
        self._held = self._end = self._space = self._words = ""
        return self._take()

    def _take(self) -> str:
        taken = "".join(self._out)
        self._out.clear()
        return taken

    # ------------------------------------------------------------ reading: code, marks, text

    def _read(self, character: str) -> None:
        match self._state:
            case "prose":
                self._read_prose(character)
            case "bracket":
                self._read_bracket(character)
            case "closed":
                self._read_after_bracket(character)
            case "ticks":
                self._read_ticks(character)
            case "code":
                self._read_code(character)
            case "address":
                self._read_address(character)
            case _:
                self._read_fence(character)

    def _read_prose(self, character: str) -> None:
        if character in _OPEN:
            self._state, self._buffer = "bracket", character
        elif character == "`":
            self._state, self._buffer = "ticks", character
        else:
            self._text(character)

    def _read_bracket(self, character: str) -> None:
        if character in _CLOSE:
            self._buffer += character
            self._state = "closed"
        elif _MARK_CHARACTERS.match(character) and character != "\n" and len(self._buffer) < _LONGEST_MARK:
            self._buffer += character
        else:
            self._release()
            self._read(character)

    def _read_after_bracket(self, character: str) -> None:
        if character == "(":  # a Markdown link; its address is nobody's mark
            self._release()
            self._state = "address"
        else:
            self._settle_bracket()
        self._read(character)

    def _read_address(self, character: str) -> None:
        self._text(character)
        if character.isspace() or character == ")":
            self._state = "prose"

    def _settle_bracket(self) -> None:
        marks = parse_marks(self._buffer[1:-1])
        glued = not self._space and self._line[-1:].isalnum()
        if (
            marks is None
            or (glued and (0 in marks or is_index(self._line)))
            or is_copied(self._line, self._buffer, self._texts)
        ):
            self._release()
        else:
            self._state, self._buffer = "prose", ""
            self._mark(marks)

    def _read_ticks(self, character: str) -> None:
        if character == "`":
            self._buffer += character
            return
        self._ticks = len(self._buffer)
        if self._ticks >= 3 and not self._line.strip():
            self._verbatim(self._buffer)
            self._state, self._buffer = "fence", ""
        else:
            self._state = "code"
        self._read(character)

    def _read_code(self, character: str) -> None:
        self._buffer += character
        closing = "`" * self._ticks
        if character == "`" and self._buffer.endswith(closing) and len(self._buffer) > 2 * self._ticks - 1:
            self._verbatim(self._buffer)
            self._state, self._buffer = "prose", ""
        elif character == "\n" or len(self._buffer) > _LONGEST_INLINE_CODE:
            self._release_code()

    def _release_code(self) -> None:
        """Ticks that nothing closed are text, and what follows them is read as text."""
        held, self._buffer, self._state = self._buffer, "", "prose"
        for tick in held[: self._ticks]:
            self._text(tick)
        for character in held[self._ticks :]:
            self._read(character)

    def _read_fence(self, character: str) -> None:
        self._verbatim(character)
        closing = self._line.strip()
        if character != "\n" and len(closing) >= self._ticks and set(closing) == {"`"}:
            self._state = "prose"

    def _release(self) -> None:
        """What looked like a mark is text."""
        held, self._buffer, self._state = self._buffer, "", "prose"
        for character in held:
            self._text(character)

    def _settle_reading(self) -> None:
        match self._state:
            case "bracket":
                self._release()
            case "closed":
                self._settle_bracket()
            case "ticks" | "code":
                self._ticks = self._ticks if self._state == "code" else len(self._buffer)
                self._release_code()
                self._settle_reading()
            case _:
                pass

    # ------------------------------------------------------------ sentences

    def _text(self, character: str) -> None:
        """One character of prose."""
        if character == "\n":
            if self._end or self._space.endswith("\n") or len(self._line) < _SHORTEST_WRAPPED_LINE:
                self._close_sentence()
            self._space = (self._space.rstrip(" \t") + "\n")[-2:]
            self._line = ""
            return
        if character.isspace():
            if not (self._mark_dropped and self._space):
                self._space += character
            self._line += character
            return
        if self._mark_dropped and (character in _ENDERS or character in _CLOSERS or character in ",;:"):
            self._space = self._space.rstrip(" \t")
        self._mark_dropped = False
        if not self._line.strip() and (character in _BLOCK_STARTS or character.isdigit()):
            self._close_sentence()  # a new line of a list, a heading, a table: the one before is over
        if self._end:
            self._after_end(character)
        else:
            self._word_or_end(character)
        self._line += character

    def _word_or_end(self, character: str) -> None:
        if character in _ENDERS and self._words.strip():
            self._end = self._take_space() + character
            self._marks = ()
        else:
            self._append(character)

    def _after_end(self, character: str) -> None:
        """The first character behind a full stop: is the sentence over?"""
        if not self._space and (character in _ENDERS or (character in _CLOSERS and not self._marks)):
            self._end += character
        elif self._space or self._marks or self._end[-1] in _FULL_WIDTH_ENDERS + _CLOSERS:
            if self._is_abbreviation(character):
                self._continue_sentence()
            else:
                self._close_sentence()
            self._word_or_end(character)
        else:  # 3.14, example.org
            self._continue_sentence()
            self._append(character)

    def _is_abbreviation(self, following: str) -> bool:
        if self._end.strip() != "." or self._marks:
            return False
        words = self._words.strip()
        return following.islower() or ends_with_abbreviation(words) or words.isdigit()

    def _continue_sentence(self) -> None:
        """The full stop did not end the sentence."""
        end, self._end = self._end, ""
        self._words += end
        self._show(end)

    def _append(self, text: str) -> None:
        piece = self._take_space() + text
        self._marks = ()
        self._words += piece
        self._show(piece)

    def _take_space(self) -> str:
        space, self._space = self._space, ""
        # Nothing stands before the answer's first word.
        return space if self._held or self._shown_characters else ""

    def _verbatim(self, text: str) -> None:
        """Code: shown as it is; its words count for what supports the sentence."""
        if self._end or (self._state == "ticks" and "\n" in self._space):  # the end, or a fence, ends it
            self._close_sentence()
        self._mark_dropped = False
        for character in text:
            if character == "\n" and self._state == "fence":
                self._close_sentence(code=True)
                self._show("\n")
                self._line = ""
            else:
                self._append(character)
                self._line += character

    def _mark(self, numbers: Sequence[int]) -> None:
        translated = dict.fromkeys(self._known[n] for n in numbers if n in self._known)
        known = tuple(n for n in translated if n not in self._marks)
        if not known:
            self._mark_dropped = bool(self._space) or self._mark_dropped
            return
        self._cited.update(known)
        self._marked = True
        text = "".join(f"[{n}]" for n in known)
        if self._end:
            self._end += self._take_space() + text
        else:
            self._show(self._take_space() + text)
        self._marks += known
        self._line += text

    def _close_sentence(self, *, code: bool = False) -> None:
        words, end = self._words, self._end
        if not code and not self._marked and _may_be_attributed(words):
            number = self._support.find(words)
            if number is not None:
                self._cited.add(number)
                closes = any(c in _CLOSERS for c in end)
                end = f"{end} [{number}]" if closes else f" [{number}]{end}"
        if end:
            self._held += end
        key = "" if code else _key(words)
        if len(key) >= _SHORTEST_REPEAT and key in self._sentences_seen:
            self._repeats += 1
            self._held = ""
        elif self._held or words:
            if key:
                self._repeats = 0
                self._sentences_seen.append(key)
                self._sentences_shown += 1
            self._flush()
        self._words = self._end = ""
        self._marks, self._marked = (), False

    # ------------------------------------------------------------ showing

    def _show(self, text: str) -> None:
        self._held += text
        if self._shown_characters == 0 and len(self._held) < _FIRST_CHARACTERS and self._state != "fence":
            return
        key = _key(self._words) if len(self._words) < _LONGEST_COMPARED else ""
        if key and any(seen.startswith(key) for seen in self._sentences_seen):
            return  # so far it only says again what was said
        self._flush()

    def _flush(self) -> None:
        self._shown_characters += len(self._held)
        if self._held:
            self._out.append(self._held)
        self._held = ""


def _may_be_attributed(sentence: str) -> bool:
    """Headings and lines that lead up to a list state nothing."""
    line = sentence.strip()
    return bool(line) and not line.startswith("#") and not line.endswith(":") and bool(content_words(line))


def _key(sentence: str) -> str:
    """A sentence as it is compared with others: without list marker, case, emphasis and spacing."""
    bare = _LIST_MARKER.sub("", sentence)
    return "".join(character for character in bare.casefold() if character.isalnum())
