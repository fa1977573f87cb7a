"""A conversation becomes tokens in the model's own format, and text can never become a control token.

What the format puts around the messages is tokenised with control tokens recognised, the text of the messages
without. The parts of a message are tokenised apart, so that a passage has the same tokens wherever it stands, and so
that what was tokenised once need not be again (known_tokens.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgerag.engine.chat import ChatFormat
from edgerag.engine.known_tokens import MOST_TOKENS, KnownTokens
from edgerag.engine.llama import Model
from edgerag.engine.stops import turn_stops
from edgerag.types import EncodedChat, Message, Passage, PassageSpan, TokenStore

# System messages that are in use at once: one, while nobody evaluates several.
_MOST_OPENINGS = 8
# A chat template writes a handful of different words; one that counts its messages is not followed for ever.
_MOST_FORMATS = 256


class PlainText:
    """Text to tokens of one loaded model, none of which is a control token."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._kinds: dict[int, bool] = {}
        self._plain: set[int] = set()  # seen in texts
        # Sentencepiece puts a space before every text it is given; inside a text that would be wrong.
        self._adds_space = model.piece(model.tokenize("x")[0]).startswith(b" ")

    def plain_tokens(self, text: str) -> list[int]:
        """Tokens of ``text``, none of which has a meaning to the model beyond the text."""
        tokens = self.tokens_inside(text, special=False)
        structural = {token for token in tokens if self._is_structural(token)}
        if not structural:
            return tokens
        # Some vocabularies give structure tokens for plain text. Cutting their names apart prevents it.
        names = {self._model.piece(token, special=True).decode("utf-8", "replace") for token in structural}
        names.discard("")
        pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        cut = re.sub(pattern, lambda match: f"{match[0][0]}\0{match[0][1:]}", text) if pattern else text
        pieces = [piece for piece in cut.split("\0") if piece] if cut != text else list(text)
        tokens = [token for piece in pieces for token in self.tokens_inside(piece, special=False)]
        return [token for token in tokens if not self._is_structural(token)]

    def is_plain(self, tokens: Sequence[int]) -> bool:
        """Whether these can be tokens of a text: the vocabulary has all of them, and none has a meaning of its own."""
        unseen = set(tokens) - self._plain
        if not all(0 <= token < self._model.vocabulary_size for token in unseen):
            return False
        if any(map(self._is_structural, unseen)):
            return False
        self._plain |= unseen
        return True

    def tokens_inside(self, text: str, *, special: bool) -> list[int]:
        """Tokens of ``text`` as it stands inside a longer one."""
        if self._adds_space and text:
            before = self._model.tokenize("\n", special=special)
            tokens = self._model.tokenize("\n" + text, special=special)
            if tokens[: len(before)] == before:
                return tokens[len(before) :]
        return self._model.tokenize(text, special=special)

    def _is_structural(self, token: int) -> bool:
        known = self._kinds.get(token)
        if known is None:
            kind = self._model.token_kind(token)
            # User-defined tokens are ordinary (runs of spaces) unless they look like a mark: <...> or [...].
            known = kind == "control" or (
                kind == "user_defined"
                and re.fullmatch(rb"\s*[<\[].*[>\]]\s*", self._model.piece(token, special=True)) is not None
            )
            self._kinds[token] = known
        return known


class ChatEncoder(PlainText):
    """Conversations to tokens, for one loaded model."""

    def __init__(
        self,
        model: Model,
        *,
        name: str,
        template: str,
        store: TokenStore | None = None,
        scope: str = "",
        most_tokens: int = MOST_TOKENS,
    ) -> None:
        """``store``: where the tokens of chunks are kept, under ``scope``, which names model and tokenizer.
        ``most_tokens`` of texts are remembered; 0: every piece is tokenised each time."""
        super().__init__(model)
        self._known = KnownTokens(
            self.plain_tokens, is_plain=self.is_plain, store=store, scope=scope, most_tokens=most_tokens
        )
        self._openings: dict[tuple[Message, ...], tuple[int, ...]] = {}
        self._formats: dict[tuple[str, bool], tuple[int, ...]] = {}
        self._format = ChatFormat(
            template,
            model_name=name,
            special_texts={
                "bos_token": model.piece(model.bos, special=True).decode("utf-8", "replace") if model.bos >= 0 else "",
                "eos_token": model.piece(model.eos, special=True).decode("utf-8", "replace") if model.eos >= 0 else "",
            },
        )
        next_turn = self._format.next_turn()
        opening = model.tokenize(next_turn, special=True)[:1]
        # Words that end an answer where the format has no token for it.
        self.stops = () if opening and model.is_end(opening[0]) else turn_stops(next_turn)

    def encode(self, messages: Sequence[Message]) -> EncodedChat:
        """Tokens of the conversation, opened for the assistant's reply."""
        tokens: list[int] = []
        passages: list[PassageSpan] = []
        home: tuple[int, ...] | None = None
        last = ""
        known = self._known.of
        self._known.load([part for message in messages for part in message.parts if isinstance(part, Passage)])
        for piece in self._format.pieces([message.role for message in messages]):
            last = piece if isinstance(piece, str) else ""
            if isinstance(piece, str):
                tokens += self._words_of_the_format(piece, first=not tokens)
                continue
            tokens = tokens or self._beginning()
            for part in messages[piece].parts:
                if isinstance(part, str):
                    tokens += known(part)
                    continue
                if home is None:
                    home = self.opening(messages)
                tokens += known(part.header)
                start = len(tokens)
                tokens += known(part.text)
                header = known(part.home_header)
                passages.append(PassageSpan(part.key, start, len(tokens), (*home, *header), len(header)))
        return EncodedChat(tuple(tokens), tuple(passages), opening=last)

    def opening(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The tokens before the first words of the first user message: the same in every conversation that has the
        same system message."""
        opening = [message for message in messages[:1] if message.role == "system"]
        if (made := self._openings.get(tuple(opening))) is not None:
            return made
        tokens: list[int] = []
        for piece in self._format.pieces([*(message.role for message in opening), "user"]):
            if isinstance(piece, str):
                tokens += self._words_of_the_format(piece, first=not tokens)
                continue
            tokens = tokens or self._beginning()
            if piece < len(opening):
                for part in opening[piece].parts:
                    tokens += self.plain_tokens(str(part))
            else:
                break
        if len(self._openings) >= _MOST_OPENINGS:
            self._openings.clear()
        return self._openings.setdefault(tuple(opening), tuple(tokens))

    def saved(self) -> None:
        """Waits until the tokens of all chunks that were encoded so far are in the store."""
        self._known.saved()

    def close(self) -> None:
        self._known.close()

    def _words_of_the_format(self, text: str, *, first: bool) -> tuple[int, ...]:
        made = self._formats.get((text, first))
        if made is None:
            if first:
                tokens = self._model.tokenize(text, special=True)
                beginning = self._beginning()
                made = tuple(tokens if tokens[: len(beginning)] == beginning else beginning + tokens)
            else:
                made = tuple(self.tokens_inside(text, special=True))
            if len(self._formats) < _MOST_FORMATS:
                self._formats[text, first] = made
        return made

    def _beginning(self) -> list[int]:
        """The token that the model wants before everything, if it wants one."""
        return [self._model.bos] if self._model.adds_bos and self._model.bos >= 0 else []
