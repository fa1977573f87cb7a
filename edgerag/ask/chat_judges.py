"""The chat model judges a passage, in one of two ways. Nothing is generated: the logits behind a prompt say it.

:class:`YesNo` asks whether the passage answers the question: would the reply begin with "yes" or with "no"?
:class:`Likelihood` has the model write a question that the passage answers: how likely would it be this one? (Sachan et
al. 2022, arXiv:2204.07496.) Small models that cannot judge can still do that.

The prompt begins as every prompt does and the passage stands where it does in an answer's, as the first source, so its
computed state (engine/kvcache.py) is used where there is one, is left behind where there was none, and only what stands
behind the passage has to be computed each time.
"""

from __future__ import annotations

import dataclasses

from edgerag.ask.captions import QUESTION
from edgerag.ask.prompt import opening_messages, passage_of
from edgerag.errors import ModelError
from edgerag.types import CancelCheck, EncodedChat, Judgement, Message, StoredChunk, Weighing

# Models differ in how they write a reply of one word, and some begin it with a space.
YES = ("Yes", "yes", " Yes", " yes")
NO = ("No", "no", " No", " no")
_ASKED = "Does the source answer the question? Reply with yes or no."
_TOLD = "Write a question that this source answers."
# Room that is kept for a question behind the prompt; the generator looks at no more of it (WEIGHED_TOKENS).
_QUESTION_TOKENS = 64


class YesNo:
    """A :class:`edgerag.types.Reranker` made of a chat model."""

    def __init__(self, generator: Weighing) -> None:
        self._generator = generator

    @property
    def name(self) -> str:
        return self._generator.name

    def judge(self, question: str, passage: StoredChunk, *, cancelled: CancelCheck) -> Judgement:
        """A passage or a question that is too long for the context is judged by its beginning. Raises Cancelled,
        ModelError."""
        room = self._generator.context_tokens - 1
        chat = _fitting(self._generator, passage, f"{QUESTION}{question}", told=f"\n{_ASKED}", room=room)
        return self._generator.weigh(chat.tokens, passages=chat.passages, words=YES, others=NO, cancelled=cancelled)


class Likelihood:
    """Another one."""

    def __init__(self, generator: Weighing) -> None:
        self._generator = generator

    @property
    def name(self) -> str:
        return self._generator.name

    def judge(self, question: str, passage: StoredChunk, *, cancelled: CancelCheck) -> Judgement:
        """As :class:`YesNo` does. The log odds are up to a constant of the question."""
        room = self._generator.context_tokens - 1 - _QUESTION_TOKENS
        chat = _fitting(self._generator, passage, "", told=_TOLD, room=room)
        return self._generator.likelihood(chat.tokens, question, passages=chat.passages, cancelled=cancelled)


def _fitting(generator: Weighing, chunk: StoredChunk, asked: str, *, told: str, room: int) -> EncodedChat:
    """The prompt in ``room`` tokens, with half as much of the longer text as often as it takes."""
    passage = passage_of(chunk, 1)
    while True:
        chat = generator.encode_chat((*opening_messages(), Message("user", (passage, asked + told))))
        if len(chat.tokens) <= room:
            return chat
        if len(passage.text) >= len(asked) and len(passage.text) > 1:
            half = passage.text[: len(passage.text) // 2]
            passage = dataclasses.replace(passage, text=half, key="")  # its state would be of another text
        elif len(asked) > 1:
            asked = asked[: len(asked) // 2]
        else:
            raise ModelError(
                f"A context of {generator.context_tokens} tokens holds no question and passage.",
                remedy="Set generation.context_tokens higher.",
            )
