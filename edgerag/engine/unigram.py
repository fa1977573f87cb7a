"""SentencePiece's unigram tokenizer, as XLM-RoBERTa has it: the likeliest way to cut each word into known pieces.

Used in place of llama.cpp's, which wants the normaliser of the original in a form that the packed weights do not bring
along (docs/decisions/046); with what is remembered of words it is fast enough. Normalises as SentencePiece's nmt_nfkc
does, by a table of characters. Source: Kudo 2018, https://arxiv.org/abs/1804.10959.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Collection, Mapping, Sequence

_MARK = "▁"  # the start of a word; no piece has it elsewhere, so words can be cut one by one
SPECIAL = frozenset({"<s>", "<pad>", "</s>", "<unk>", "<mask>"})  # of XLM-RoBERTa
_UNKNOWN_PENALTY = 10.0  # below the least likely piece, as in SentencePiece
_KEPT_WORDS = 65_536  # of the cache; a language's running text has fewer
_LONGEST_KEPT = 64  # characters: a sentence without spaces does not come again


class Unigram:
    """Thread safe: the cache only ever gains entries that any thread would compute alike."""

    def __init__(
        self,
        pieces: Sequence[str],
        scores: Sequence[float],
        *,
        unknown: int,
        special: Collection[str],
        characters: Mapping[str, str],
    ) -> None:
        """``pieces`` and their ``scores`` (logarithms of likelihoods) by token number; those called as in ``special``
        are never found in a text; ``characters`` gives what other characters stand for. Raises ValueError for a
        vocabulary without a piece."""
        self._pieces = {piece: token for token, piece in enumerate(pieces) if piece not in special and token != unknown}
        self._scores = array("d", scores)  # a list of floats would take ten times the room
        self._unknown = unknown
        self._unknown_score = min(self._scores[token] for token in self._pieces.values()) - _UNKNOWN_PENALTY
        self._longest = max(map(len, self._pieces))
        self._characters = str.maketrans(dict(characters))
        self._words: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str) -> list[int]:
        """Tokens of ``text``, without those for its beginning and end."""
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        known = self._words
        tokens: list[int] = []
        for word in _words(text.translate(self._characters)):
            found = known.get(word)
            if found is None:
                found = self._cut(word)
                if len(word) <= _LONGEST_KEPT:
                    if len(known) >= _KEPT_WORDS:
                        known = self._words = {}
                    known[word] = found
            tokens += found
        return tokens

    def _cut(self, word: str) -> tuple[int, ...]:
        """The pieces whose scores add up to most (Viterbi); one unknown token for characters that are in none."""
        pieces, scores, longest, length = self._pieces, self._scores, self._longest, len(word)
        best = [0.0] + [float("-inf")] * length
        last: list[tuple[int, int]] = [(0, 0)] * (length + 1)  # token, and where it begins
        for start in range(length):
            here = best[start]
            for end in range(start + 1, min(length, start + longest) + 1):
                token = pieces.get(word[start:end])
                if token is not None and here + scores[token] > best[end]:
                    best[end], last[end] = here + scores[token], (token, start)
            if here + self._unknown_score > best[start + 1]:
                best[start + 1], last[start + 1] = here + self._unknown_score, (self._unknown, start)
        found: list[int] = []
        end = length
        while end:
            token, end = last[end]
            if not (token == self._unknown and found and found[-1] == token):
                found.append(token)
        return tuple(reversed(found))


def _words(text: str) -> list[str]:
    """``text`` cut before each run of spaces, which becomes the mark. A text that ends with a space ends with one."""
    parts = text.split(" ")
    words = [_MARK + part for part in parts if part]
    return [*words, _MARK] if parts[-1] == "" and words else words
