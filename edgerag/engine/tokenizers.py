"""Which tokenizer reads for a model: llama.cpp's, or one of ours."""

from __future__ import annotations

import json

from edgerag.engine.gguf import Header
from edgerag.engine.llama import Model
from edgerag.engine.unigram import SPECIAL as UNIGRAM_SPECIAL
from edgerag.engine.unigram import Unigram
from edgerag.engine.wordpiece import WordPiece
from edgerag.errors import ModelDamaged


def own_tokenizer(model: Model, header: Header) -> WordPiece | Unigram | None:
    """A tokenizer of ours where llama.cpp's gives other tokens than the original's; None where it does not."""
    kind = header.text("tokenizer.ggml.model", "")
    if kind == "bert":
        return WordPiece(model.vocabulary())
    if kind == "t5" and (characters := header.text("edgerag.characters", "")):
        try:
            count = header.number("edgerag.pieces", model.vocabulary_size)  # behind them the table is padded
            return Unigram(
                model.vocabulary()[:count],
                model.scores()[:count],
                unknown=header.number("tokenizer.ggml.unknown_token_id", 0),
                special=UNIGRAM_SPECIAL,
                characters={str(one): str(other) for one, other in json.loads(characters).items()},
            )
        except (ValueError, AttributeError) as error:
            raise ModelDamaged(f"{header.path} has a table of characters that cannot be read: {error}.") from error
    return None
