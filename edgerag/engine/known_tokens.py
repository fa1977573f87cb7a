"""Texts that were tokenised before are not tokenised again: in memory, and of chunks in a store beside the library.

Tokens are a pure function of the text and the model's vocabulary, so that a prompt of known pieces is the same to the
token as one of pieces that are tokenised. What comes from the store is looked at like what the tokenizer gives: a
control token among it, or one that the vocabulary does not have, and the text is tokenised instead.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from edgerag.types import ChunkTokens, Passage, TokenStore

# Some 5,000 chunks: what a long conversation reads, in a few megabytes.
MOST_TOKENS = 1_000_000
# Longer texts are questions that were pasted, and seldom asked twice.
_LONGEST_TOKENS = 50_000

Tokens = tuple[int, ...]


class KnownTokens:
    """Of one loaded model. Any thread may call it."""

    def __init__(
        self,
        tokenise: Callable[[str], Sequence[int]],
        *,
        is_plain: Callable[[Sequence[int]], bool],
        store: TokenStore | None = None,
        scope: str = "",
        most_tokens: int = MOST_TOKENS,
    ) -> None:
        """``scope`` names the model and the version of its tokenizer; ``is_plain`` tells tokens that can be those of a
        text. ``most_tokens`` are remembered; 0: every text is tokenised each time."""
        self._tokenise = tokenise
        self._is_plain = is_plain
        self._store = store
        self._scope = scope
        self._most_tokens = most_tokens
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Tokens] = OrderedDict()
        self._count = 0
        self._moment = store.moment() if store is not None else (0, 0)
        # Writing to the disk takes longer than anybody who waits for an answer has.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="tokens") if store is not None else None

    def of(self, text: str) -> Tokens:
        with self._lock:
            return self._of(text)

    def load(self, passages: Sequence[Passage]) -> None:
        """Makes the tokens of whole chunks and their headers known, from the store where they are there; those that are
        not are put there. What was dropped from the store since the last call is forgotten here, too."""
        if self._store is None:
            return
        with self._lock:
            moment = self._store.moment()
            if moment != self._moment:
                self._moment = moment
                self._known.clear()
                self._count = 0
            missing = {
                one.key: texts
                for one in passages
                if one.key and (texts := [t for t in (one.text, one.header, one.home_header) if t not in self._known])
            }
            if not missing:
                return
            for text, tokens in self._store.read(self._scope, missing).items():
                if self._is_plain(tokens):
                    self._add(text, tokens)
            made = [
                ChunkTokens(name, text, self._of(text))
                for name, texts in missing.items()
                for text in texts
                if text not in self._known
            ]
            since = self._store.begun()
        if made and self._writer is not None:
            self._writer.submit(self._store.keep, self._scope, made, since=since)

    def saved(self) -> None:
        """Waits until all that was made so far is in the store."""
        if self._writer is not None:
            self._writer.submit(int).result()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.shutdown()

    def _of(self, text: str) -> Tokens:
        tokens = self._known.get(text)
        if tokens is None:
            tokens = tuple(self._tokenise(text))
            self._add(text, tokens)
        else:
            self._known.move_to_end(text)
        return tokens

    def _add(self, text: str, tokens: Tokens) -> None:
        if len(tokens) > _LONGEST_TOKENS or text in self._known:
            return
        self._known[text] = tokens
        self._count += len(tokens)
        while self._count > self._most_tokens:
            self._count -= len(self._known.popitem(last=False)[1])
