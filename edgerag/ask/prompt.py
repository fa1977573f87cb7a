"""Instruction, sources, conversation and question become the tokens that the model is given.

The prompt always fits, counted by the model's own tokenizer in the model's own chat format. What
does not fit goes in this order: earlier turns, sources from the last, the repeated best words, the end
of the question down to half of the room, the end of the only source. Each but the repeated words is
told in the Prompt or as a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgerag.ask.captions import BEST_WORDS, QUESTION
from edgerag.ask.words import sentence_spans
from edgerag.config import GenerationSettings
from edgerag.errors import UsageError
from edgerag.types import Generator, Message, Prompt, Source, Turn

# Found by trial with the default model (docs/decisions/043): a longer instruction, rules on how to
# cite, or "using only" made its answers worse. Sentences that it does not mark are attributed by cite.py.
INSTRUCTION = "Answer the question from the sources. Be short."
# Earlier turns are prefilled before the first word can come; at 500 tokens a second this is half a second.
_HISTORY_TOKENS = 250
_MARK = re.compile(r"\s*\[\d+\]")


@dataclass(frozen=True, slots=True)
class Assembled:
    """The prompt, and whether its only source had to be cut."""

    prompt: Prompt
    source_cut: bool


def assemble(
    question: str,
    *,
    sources: Sequence[Source],
    history: Sequence[Turn],
    generator: Generator,
    settings: GenerationSettings,
    question_cut: bool = False,
) -> Assembled:
    """The prompt for ``sources`` (at least one). Raises UsageError when the context holds no question."""
    context = min(settings.context_tokens, generator.context_tokens)
    limit = context - min(settings.answer_tokens, context // 2)
    texts = [_source_text(source) for source in sources]
    quote = " ".join(sources[0].quote.split())
    if len(generator.encode_chat(_messages(texts[:1], (), question, quote=quote))) > limit:
        quote = ""  # the first thing to go: its words stand in the source

    def encode(texts: Sequence[str], turns: Sequence[Turn], asked: str) -> tuple[int, ...]:
        return generator.encode_chat(_messages(texts, turns, asked, quote=quote))

    def fits(texts: Sequence[str], turns: Sequence[Turn], asked: str) -> bool:
        return len(encode(texts, turns, asked)) <= limit

    asked = question
    source_cut = False
    if not fits(texts[:1], (), asked):
        bare = len(encode((), (), ""))
        # Half of the room is the question's at most, so that a source has the other.
        half = bare + max(1, (limit - bare) // 2)
        asked = _cut_question(question, lambda cut: len(encode((), (), cut)) <= half)
    if not fits(texts[:1], (), asked):
        texts = [_cut_source(sources[0], lambda text: fits([text], (), asked))]
        source_cut = True
    kept = max(1, _most(len(texts), lambda count: fits(texts[:count], (), asked)))
    turns = _fitting_history(history, texts[:kept], asked, encode, limit)
    tokens = encode(texts[:kept], turns, asked)
    return Assembled(
        Prompt(
            tokens=tokens,
            sources=tuple(sources[:kept]),
            dropped=tuple(source.hit for source in sources[kept:]),
            history_dropped=len(history) - len(turns),
            answer_room=min(settings.answer_tokens, context - len(tokens)),
            question_cut=question_cut or asked != question,
        ),
        source_cut=source_cut,
    )


def _messages(texts: Sequence[str], turns: Sequence[Turn], question: str, *, quote: str) -> tuple[Message, ...]:
    """A small model reads best what stands last: the sources come in reverse, the best one nearest to
    the question, and between the two its best words once more (docs/decisions/043)."""
    conversation: list[Message] = [Message("system", (INSTRUCTION,))]
    for turn in turns:
        conversation.append(Message("user", (turn.question,)))
        # Its marks count the sources of then, not those of now.
        conversation.append(Message("assistant", (_MARK.sub("", turn.answer),)))
    best_words = (f"{BEST_WORDS}{quote}\n\n",) if quote else ()
    conversation.append(Message("user", (*reversed(texts), *best_words, f"{QUESTION}{question}")))
    return tuple(conversation)


def _source_text(source: Source, text: str | None = None) -> str:
    chunk = source.hit.chunk
    heading = chunk.chunk.heading_path[-1] if chunk.chunk.heading_path else ""
    title = chunk.title if heading in ("", chunk.title) else f"{chunk.title}: {heading}"
    return f"[{source.number}] {title}\n{chunk.chunk.text if text is None else text}\n\n"


def _fitting_history(
    history: Sequence[Turn],
    texts: Sequence[str],
    question: str,
    encode: Callable[[Sequence[str], Sequence[Turn], str], tuple[int, ...]],
    limit: int,
) -> tuple[Turn, ...]:
    """The newest turns for which there is room, whole and in order."""
    if not history:
        return ()
    allowed = min(limit, len(encode(texts, (), question)) + _HISTORY_TOKENS)
    count = _most(len(history), lambda n: len(encode(texts, history[-n:], question)) <= allowed)
    return tuple(history[-count:]) if count else ()


def _cut_source(source: Source, fits: Callable[[str], bool]) -> str:
    """As many whole sentences of the source as fit; words, when not even one does."""
    text = source.hit.chunk.chunk.text
    for ends in ([end for _, end in sentence_spans(text)], [match.end() for match in re.finditer(r"\S+", text)]):
        count = _most(len(ends), lambda n, ends=ends: fits(_source_text(source, text[: ends[n - 1]])))  # type: ignore[misc]
        if count:
            return _source_text(source, text[: ends[count - 1]])
    raise _too_small()


def _cut_question(question: str, fits: Callable[[str], bool]) -> str:
    """The beginning of the question that fits; all of it when it does."""
    kept = _most(len(question), lambda n: fits(question[:n]))
    if kept == 0:
        raise _too_small()
    return question[:kept].rstrip()


def _too_small() -> UsageError:
    return UsageError(
        "The model's context is too small for a question and a source.",
        remedy="Raise generation.context_tokens or lower generation.answer_tokens.",
    )


def _most(most: int, holds: Callable[[int], bool]) -> int:
    """The largest n in 1..``most`` for which ``holds(n)``, 0 if none; what holds for n holds below."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
