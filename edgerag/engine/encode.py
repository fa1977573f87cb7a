"""A conversation becomes tokens in the model's own format, and text can never become a control token.

What the format puts around the messages is tokenised with control tokens recognised, the text of the messages
without. The parts of a message are tokenised apart, so that a passage has the same tokens wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgerag.engine.chat import ChatFormat
from edgerag.engine.llama import Model
from edgerag.engine.stops import turn_stops
from edgerag.types import EncodedChat, Message, PassageSpan


class PlainText:
    """Text to tokens of one loaded model, none of which is a control token."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._kinds: dict[int, bool] = {}
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

    def __init__(self, model: Model, *, name: str, template: str) -> None:
        super().__init__(model)
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
        for piece in self._format.pieces([message.role for message in messages]):
            last = piece if isinstance(piece, str) else ""
            if isinstance(piece, str):
                tokens += self._words_of_the_format(piece, first=not tokens)
                continue
            tokens = tokens or self._beginning()
            for part in messages[piece].parts:
                if isinstance(part, str):
                    tokens += self.plain_tokens(part)
                    continue
                if home is None:
                    home = self.opening(messages)
                tokens += self.plain_tokens(part.header)
                start = len(tokens)
                tokens += self.plain_tokens(part.text)
                header = self.plain_tokens(part.home_header)
                passages.append(PassageSpan(part.key, start, len(tokens), (*home, *header), len(header)))
        return EncodedChat(tuple(tokens), tuple(passages), opening=last)

    def opening(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The tokens before the first words of the first user message: the same in every conversation that has the
        same system message."""
        opening = [message for message in messages[:1] if message.role == "system"]
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
        return tuple(tokens)

    def _words_of_the_format(self, text: str, *, first: bool) -> list[int]:
        if not first:
            return self.tokens_inside(text, special=True)
        tokens = self._model.tokenize(text, special=True)
        beginning = self._beginning()
        return tokens if tokens[: len(beginning)] == beginning else beginning + tokens

    def _beginning(self) -> list[int]:
        """The token that the model wants before everything, if it wants one."""
        return [self._model.bos] if self._model.adds_bos and self._model.bos >= 0 else []
