"""Stand-ins for the models: deterministic, and meaningful enough that search finds what it should."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from edgerag.errors import Cancelled
from edgerag.types import (
    CancelCheck,
    EmbedderIdentity,
    EncodedChat,
    Generated,
    Judgement,
    Message,
    PassageSpan,
    Sampling,
    StoredChunk,
)

if TYPE_CHECKING:
    from edgerag.types import Vectors

_WORD = re.compile(r"\w+")


class HashingEmbedder:
    """Bag of words hashed into ``dimension`` signed buckets: texts that share words are near."""

    def __init__(
        self,
        *,
        dimension: int = 64,
        max_tokens: int = 254,
        name: str = "hashing",
        languages: tuple[str, ...] = ("*",),
    ) -> None:
        self.identity = EmbedderIdentity(
            name=name, weights_sha256=f"{dimension:064x}", dimension=dimension, languages=languages
        )
        self.max_tokens = max_tokens
        self.embedded: list[str] = []  # every passage embedded so far

    def count_tokens(self, text: str) -> int:
        return len(_WORD.findall(text))

    def embed_query(self, text: str) -> Vectors:
        vector = np.zeros(self.identity.dimension, dtype=np.float32)
        vector[0] = 1e-3  # a text without words still has a direction
        for word in _WORD.findall(text.casefold()):
            digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            vector[int.from_bytes(digest[:4], "little") % len(vector)] += 1.0 if digest[4] & 1 else -1.0
        return vector / np.linalg.norm(vector)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.embedded.extend(texts)
        return np.stack([self.embed_query(text) for text in texts])

    def close(self) -> None:
        pass


class ScriptedGenerator:
    """Says ``reply`` piece by piece, whatever it is asked; a token is a word."""

    def __init__(self, reply: str = "It is so [1].", *, context_tokens: int = 2048, name: str = "scripted") -> None:
        self.reply = reply
        self.name = name
        self.context_tokens = context_tokens
        self.prompts: list[tuple[int, ...]] = []  # what it was asked to decode
        self.messages: list[tuple[Message, ...]] = []  # what was encoded last, in order
        self.max_tokens_asked: list[int] = []
        self.prepared: list[tuple[Message, ...]] = []
        self.token_s = 0.0  # that reading one takes; 0: not known

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def encode_chat(self, messages: Sequence[Message]) -> EncodedChat:
        self.messages.append(tuple(messages))
        words = [word for message in messages for part in message.parts for word in (*str(part).split(), "\n")]
        return EncodedChat(tuple(hash_word(word) for word in words))

    def reading_s(self, chat: EncodedChat) -> float | None:
        return len(chat.tokens) * self.token_s if self.token_s else None

    def encode_text(self, text: str) -> tuple[int, ...]:
        return tuple(hash_word(word) for word in text.split())

    def prepare(self, messages: Sequence[Message]) -> None:
        self.prepared.append(tuple(messages))

    def generate(
        self,
        tokens: Sequence[int],
        *,
        passages: Sequence[PassageSpan] = (),
        max_tokens: int,
        sampling: Sampling,
        cancelled: CancelCheck,
    ) -> Iterator[Generated]:
        assert len(tokens) + max_tokens <= self.context_tokens, "the prompt must leave room for the answer"
        self.prompts.append(tuple(tokens))
        self.max_tokens_asked.append(max_tokens)
        pieces = re.findall(r"\s*\S+", self.reply)
        for count, piece in enumerate(pieces[:max_tokens], start=1):
            if cancelled():
                yield Generated(text="", token_count=count - 1, stop="cancelled")
                return
            yield Generated(text=piece, token_count=count, stop=None)
        stop: Literal["end", "length"] = "end" if len(pieces) <= max_tokens else "length"
        yield Generated(text="", token_count=min(len(pieces), max_tokens), stop=stop)

    def close(self) -> None:
        pass


def hash_word(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


class ScriptedReranker:
    """Judges a passage by the words of ``liked`` that stand in it; ``tick`` is called for each, to let time pass."""

    def __init__(self, *liked: str, name: str = "judge", tick: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.liked = liked
        self.tick = tick
        self.judged: list[str] = []  # the passages, in order

    def judge(self, question: str, passage: StoredChunk, *, cancelled: CancelCheck) -> Judgement:
        del question
        if cancelled():
            raise Cancelled("Reading a passage was cancelled.")
        self.judged.append(passage.chunk.text)
        self.tick()
        return Judgement(5.0 if any(word in passage.chunk.text for word in self.liked) else -5.0)
