"""Instruction, sources, conversation and question become the tokens that the model is given.

The prompt always fits, counted by the model's own tokenizer in the model's own chat format. What
does not fit goes in this order: earlier turns, sources from the last, the repeated best words, the end
of the question down to half of the room, the end of the only source. Each but the repeated words is
told in the Prompt or as a note.

It is laid out so that most of it need not be computed again. A conversation goes on behind what the model
has read, as long as that fits; only sources that it does not have yet are added. In a new one the sources come
first, behind the instruction, in the order of the library: the same chunks then stand in the same places
whatever the question was. Only the best one stands last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgerag.ask.captions import BEST_WORDS, QUESTION
from edgerag.ask.words import sentence_spans
from edgerag.config import GenerationSettings
from edgerag.errors import UsageError
from edgerag.types import EncodedChat, Generator, Message, Passage, Prompt, Source, Turn

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
    quote = " ".join(sources[0].quote.split())
    continued = _continued(question, sources, history, generator, limit, quote=quote)
    if continued is not None:
        messages, chat, marks = continued
        return Assembled(
            _prompt(chat, messages, sources, (), marks, context, settings, question_cut=question_cut), source_cut=False
        )
    if len(generator.encode_chat(_messages(_numbered(sources[:1]), (), question, quote=quote)).tokens) > limit:
        quote = ""  # the first thing to go: its words stand in the source

    def length(passages: Sequence[Passage], turns: Sequence[Turn], asked: str) -> int:
        return len(generator.encode_chat(_messages(passages, turns, asked, quote=quote)).tokens)

    asked = question
    passages = _numbered(sources[:1])
    source_cut = False
    if length(passages, (), asked) > limit:
        bare = length((), (), "")
        # Half of the room is the question's at most, so that a source has the other.
        half = bare + max(1, (limit - bare) // 2)
        asked = _cut_question(question, lambda cut: length((), (), cut) <= half)
    if length(passages, (), asked) > limit:
        passages = (_cut_source(sources[0], lambda passage: length((passage,), (), asked) <= limit),)
        source_cut, kept = True, 1
    else:
        kept = _most(len(sources), lambda count: length(_numbered(sources[:count]), (), asked) <= limit)
        passages = _numbered(sources[:kept])
    turns = _fitting_history(history, passages, asked, length, limit)
    messages = _messages(passages, turns, asked, quote=quote)
    return Assembled(
        _prompt(
            generator.encode_chat(messages),
            messages,
            sources[:kept],
            sources[kept:],
            _marks(sources[:kept]),
            context,
            settings,
            question_cut=question_cut or asked != question,
            history_dropped=len(history) - len(turns),
        ),
        source_cut=source_cut,
    )


def opening_messages() -> tuple[Message, ...]:
    """What every prompt begins with: the model can read it before anything is asked."""
    return (Message("system", (INSTRUCTION,)),)


def _prompt(
    chat: EncodedChat,
    messages: tuple[Message, ...],
    sources: Sequence[Source],
    dropped: Sequence[Source],
    marks: tuple[tuple[int, int], ...],
    context: int,
    settings: GenerationSettings,
    *,
    question_cut: bool,
    history_dropped: int = 0,
) -> Prompt:
    return Prompt(
        tokens=chat.tokens,
        passages=chat.passages,
        opening=chat.opening,
        messages=messages,
        sources=tuple(sources),
        marks=marks,
        dropped=tuple(source.hit for source in dropped),
        history_dropped=history_dropped,
        answer_room=min(settings.answer_tokens, context - len(chat.tokens)),
        question_cut=question_cut,
    )


def _continued(
    question: str,
    sources: Sequence[Source],
    history: Sequence[Turn],
    generator: Generator,
    limit: int,
    *,
    quote: str,
) -> tuple[tuple[Message, ...], EncodedChat, tuple[tuple[int, int], ...]] | None:
    """The conversation as the model has it, with this question behind it; None when there is none or it is full."""
    before = history[-1].messages if history else ()
    if not before:
        return None
    had = [part for message in before for part in message.parts if isinstance(part, Passage)]
    place = {(passage.key, passage.text): number for number, passage in enumerate(had, start=1)}
    known, new = [], []
    for source in _in_order(sources):
        number = place.get((source.hit.chunk.kv_key, _text(source)))
        if number is None:
            new.append(source)
        else:
            known.append((number, source.number))
    passages = _numbered(new, ordered=True, first=len(had) + 1)
    messages = (*before, _asking(passages, question, quote=quote))
    chat = generator.encode_chat(messages)
    if len(chat.tokens) > limit:
        return None
    marks = (*known, *((number, source.number) for number, source in enumerate(new, start=len(had) + 1)))
    return messages, chat, marks


def _in_order(sources: Sequence[Source]) -> tuple[Source, ...]:
    """As they stand in the prompt: in the order of the library, but for the best one, which a small model reads best
    next to the question (docs/decisions/043)."""
    others = sorted(sources[1:], key=lambda source: source.hit.chunk.id)
    return (*others, *sources[:1])


def _marks(sources: Sequence[Source]) -> tuple[tuple[int, int], ...]:
    return tuple((number, source.number) for number, source in enumerate(_in_order(sources), start=1))


def _numbered(sources: Sequence[Source], *, ordered: bool = False, first: int = 1) -> tuple[Passage, ...]:
    """The sources as passages of the prompt, numbered as they stand there."""
    in_order = sources if ordered else _in_order(sources)
    return tuple(_passage(source, number) for number, source in enumerate(in_order, start=first))


def _passage(source: Source, number: int, text: str | None = None) -> Passage:
    chunk = source.hit.chunk
    heading = chunk.chunk.heading_path[-1] if chunk.chunk.heading_path else ""
    title = chunk.title if heading in ("", chunk.title) else f"{chunk.title}: {heading}"
    return Passage(
        header=f"[{number}] {title}\n",
        home_header=f"[1] {title}\n",
        text=_text(source) if text is None else f"{text}\n\n",
        key=chunk.kv_key if text is None else "",
        chunk_id=chunk.id,
    )


def _text(source: Source) -> str:
    return f"{source.hit.chunk.chunk.text}\n\n"


def _messages(passages: Sequence[Passage], turns: Sequence[Turn], question: str, *, quote: str) -> tuple[Message, ...]:
    conversation: list[Message] = [*opening_messages()]
    for turn in turns:
        conversation.append(Message("user", (turn.question,)))
        # Its marks count the sources of then, not those of now.
        conversation.append(Message("assistant", (_MARK.sub("", turn.answer),)))
    return (*conversation, _asking(passages, question, quote=quote))


def _asking(passages: Sequence[Passage], question: str, *, quote: str) -> Message:
    """Between the sources and the question the best words once more (docs/decisions/043)."""
    best_words = (f"{BEST_WORDS}{quote}\n\n",) if quote else ()
    return Message("user", (*passages, *best_words, f"{QUESTION}{question}"))


def _fitting_history(
    history: Sequence[Turn],
    passages: Sequence[Passage],
    question: str,
    length: Callable[[Sequence[Passage], Sequence[Turn], str], int],
    limit: int,
) -> tuple[Turn, ...]:
    """The newest turns for which there is room, whole and in order."""
    if not history:
        return ()
    allowed = min(limit, length(passages, (), question) + _HISTORY_TOKENS)
    count = _most(len(history), lambda n: length(passages, history[-n:], question) <= allowed)
    return tuple(history[-count:]) if count else ()


def _cut_source(source: Source, fits: Callable[[Passage], bool]) -> Passage:
    """As many whole sentences of the source as fit; words, when not even one does."""
    text = source.hit.chunk.chunk.text
    for ends in ([end for _, end in sentence_spans(text)], [match.end() for match in re.finditer(r"\S+", text)]):
        count = _most(len(ends), lambda n, ends=ends: fits(_passage(source, 1, text[: ends[n - 1]])))  # type: ignore[misc]
        if count:
            return _passage(source, 1, text[: ends[count - 1]])
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
