"""A question and a passage become the one text that a reranker reads.

Three forms are known: what the file's own template says (Qwen3-Reranker), BERT's ``[CLS] question [SEP] passage [SEP]``
with a segment for each, and ``<s> question </s></s> passage </s>`` of the RoBERTa family. The texts are tokenised
apart from what stands around them, so that neither can become a control token. A pair that is too long loses the end of
the passage, and of the question what is more than half.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from edgerag.engine.encode import PlainText
from edgerag.engine.gguf import Header
from edgerag.engine.llama import Model
from edgerag.engine.tokenizers import own_tokenizer
from edgerag.engine.wordpiece import WordPiece
from edgerag.errors import ModelWrongKind

_TEMPLATE = "tokenizer.chat_template.rerank"  # as llama.cpp's convert_hf_to_gguf.py writes it
_SLOTS = re.compile(r"(\{query\}|\{document\})")
_QUERY, _DOCUMENT = "{query}", "{document}"
_TWICE = b"</s>"  # RoBERTa's separator stands twice between two texts, [SEP] once
_LEAST_ROOM = 8  # tokens for both texts; with less a pair says nothing


@dataclass(frozen=True, slots=True)
class Pair:
    """``second``: where the second segment begins; the length of ``tokens`` where the model has no segments."""

    tokens: list[int]
    second: int


class PairEncoder:
    """Pairs to tokens of one loaded model."""

    def __init__(self, model: Model, header: Header, *, window: int) -> None:
        """``window``: the longest pair in tokens. Raises ModelWrongKind for a model whose form is not known, or whose
        window holds no pair."""
        own = own_tokenizer(model, header)
        plain = None if own else PlainText(model)
        self._plain: Callable[[str], list[int]] = own.encode if own else plain.plain_tokens  # type: ignore[union-attr]
        self._has_segments = isinstance(own, WordPiece)
        template = header.text(_TEMPLATE, "")
        self._document_first = False
        if template:
            pieces = _SLOTS.split(template)
            slots = [piece for piece in pieces if piece in (_QUERY, _DOCUMENT)]
            if sorted(slots) != sorted((_QUERY, _DOCUMENT)):
                raise ModelWrongKind(f"{header.path}: its template for pairs has not one place for each of both texts.")
            self._document_first = slots[0] == _DOCUMENT
            self._around = [model.tokenize(piece, special=True) if piece else [] for piece in pieces[0::2]]
            if model.adds_bos and model.bos >= 0 and self._around[0][:1] != [model.bos]:
                self._around[0].insert(0, model.bos)
        elif isinstance(own, WordPiece):
            self._around = [[own.first], [own.last], [own.last]]
        else:
            self._around = _of_ends(model, header)
        self._room = window - sum(map(len, self._around))
        if self._room < _LEAST_ROOM:
            raise ModelWrongKind(f"{header.path} reads {window} tokens at most, which is no room for two texts.")

    def encode(self, question: str, passage: str) -> Pair:
        asked, read = self._plain(question), self._plain(passage)
        asked = asked[: max(self._room // 2, self._room - len(read))]
        read = read[: self._room - len(asked)]
        texts = (read, asked) if self._document_first else (asked, read)
        tokens = [*self._around[0], *texts[0], *self._around[1]]
        second = len(tokens)
        tokens += [*texts[1], *self._around[2]]
        return Pair(tokens, second if self._has_segments else len(tokens))


def _of_ends(model: Model, header: Header) -> list[list[int]]:
    """What the model's own marks of beginning, end and separation make of a pair."""
    separator = model.separator if model.separator >= 0 else model.eos
    end = model.eos if model.eos >= 0 else separator
    if separator < 0:
        raise ModelWrongKind(f"{header.path} says neither how a pair is written nor what stands between two texts.")
    twice = model.piece(separator, special=True) == _TWICE
    between = [end, separator] if twice else [separator]
    return [[model.bos] if model.bos >= 0 else [], between, [end]]
