"""BERT's uncased tokenizer: normalised words, looked up piece by piece.

Used in place of llama.cpp's, which drops the spacing marks of Indic scripts, breaks Hangul syllables
differently and splits words of any length where BERT gives up (docs/decisions/021); and because one
dictionary look-up per word is faster. Follows BertNormalizer and WordPiece of Hugging Face tokenizers.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_MARK = "▁"  # in a GGUF vocabulary, the start of a word; pieces inside a word have no mark
_LONGEST_WORD = 100  # characters; longer words are [UNK], as in BERT
_KEPT_WORDS = 65_536  # of the cache; a language's running text has fewer


class WordPiece:
    """Thread safe: the caches only ever gain entries that any thread would compute alike."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        """``vocabulary`` as it stands in a GGUF file, by token number."""
        self._starts: dict[str, int] = {}
        self._insides: dict[str, int] = {}
        for token, text in enumerate(vocabulary):
            if text.startswith(_MARK):
                self._starts.setdefault(text[1:], token)
            else:
                self._insides.setdefault(text, token)
        # Names like [UNK] have no mark; a word cannot contain them, as "[" is a word of its own.
        self.unknown, self.first, self.last = (self._insides.pop(name) for name in ("[UNK]", "[CLS]", "[SEP]"))
        self._characters = _Characters()
        self._words: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str) -> list[int]:
        """Tokens of ``text``, without [CLS] and [SEP]."""
        if not text.isascii():
            text = unicodedata.normalize("NFD", text)
        known = self._words
        tokens: list[int] = []
        for word in text.translate(self._characters).split():
            pieces = known.get(word)
            if pieces is None:
                pieces = self._look_up(word)
                if len(known) >= _KEPT_WORDS:
                    known = self._words = {}
                known[word] = pieces
            tokens += pieces
        return tokens

    def _look_up(self, word: str) -> tuple[int, ...]:
        """The longest piece that begins the word, then the longest that goes on, to its end."""
        if len(word) > _LONGEST_WORD:
            return (self.unknown,)
        pieces: list[int] = []
        begin, pieces_known = 0, self._starts
        while begin < len(word):
            for end in range(len(word), begin, -1):
                token = pieces_known.get(word[begin:end])
                if token is not None:
                    break
            else:
                return (self.unknown,)
            pieces.append(token)
            begin, pieces_known = end, self._insides
        return tuple(pieces)


class _Characters(dict[int, str]):
    """What becomes of one character of decomposed text; a table for str.translate that fills itself."""

    def __missing__(self, code: int) -> str:
        self[code] = result = _plain(chr(code))
        return result


def _plain(character: str) -> str:
    if character in " \t\n\r":
        return " "
    category = unicodedata.category(character)
    if category in ("Mn", "Cc", "Cf", "Co", "Cs") or character == "\ufffd":
        return ""  # accents, and what has no shape; unassigned characters stay, as in BERT
    if character.isspace():
        return " "
    if category[0] == "P" or (character.isascii() and not character.isalnum()) or _is_ideograph(ord(character)):
        return f" {character} "
    return character.lower()  # one by one: str.lower() would look at neighbours for the Greek sigma


def _is_ideograph(code: int) -> bool:
    """The list of Hugging Face tokenizers, gaps included; kana and Hangul are not in it."""
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2B81F
        or 0x2B920 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )
