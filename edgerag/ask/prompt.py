"""Instruction, sources, conversation and question become the tokens that the model is given.

The prompt always fits, counted by the model's own tokenizer in the model's own chat format. What
does not fit goes in this order: earlier turns, sources from the last, the repeated best words, the end
of the question down to half of the room, all but the best sentences of the only source. Each but the repeated words is
told in the Prompt or as a note. What the model could not read in the time that it has goes in the same order, as far as
the best sentence of the best source. Of the first source that is left out the best sentences stay, where they fit.

It is laid out so that most of it need not be computed again. A conversation goes on behind what the model
has read, as long as that fits; only sources that it does not have yet are added. In a new one the sources come
first, behind the instruction, in the order of the library: the same chunks then stand in the same places
whatever the question was. Only the best one stands last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from edgerag.ask.captions import BEST_WORDS, QUESTION
from edgerag.ask.going_on import passage_text
from edgerag.ask.shorten import shortened
from edgerag.ask.words import sentence_spans
from edgerag.config import GenerationSettings
from edgerag.errors import UsageError
from edgerag.types import EncodedChat, Generator, Message, Passage, Prompt, Source, StoredChunk, Turn

# Found by trial with the default model (docs/decisions/043): a longer instruction, rules on how to
# cite, or "using only" made its answers worse. Sentences that it does not mark are attributed by cite.py.
INSTRUCTION = "Answer the question from the sources. Be short."
# Earlier turns are prefilled before the first word can come; at 500 tokens a second this is half a second.
_HISTORY_TOKENS = 250
# What of a passage is tried, one after the other, when there is no room or no time for all of it.
_SHARES = (0.85, 0.65, 0.5, 0.35, 0.25, 0.15, 0.08)
_MARK = re.compile(r"\s*\[\d+\]")


@dataclass(frozen=True, slots=True)
class _Limits:
    """What a prompt may come to, in the model's own tokens and seconds."""

    generator: Generator
    context_tokens: int
    tokens: int  # the rest of the context is for the answer
    seconds: float  # 0: any time
    # A conversation is looked at for its length, for its time, and at last for itself.
    encoded: dict[tuple[Message, ...], EncodedChat] = field(default_factory=dict)

    @classmethod
    def of(cls, generator: Generator, settings: GenerationSettings) -> _Limits:
        context = min(settings.context_tokens, generator.context_tokens)
        return cls(generator, context, context - min(settings.answer_tokens, context // 2), settings.reading_s)

    def encode(self, messages: tuple[Message, ...]) -> EncodedChat:
        chat = self.encoded.get(messages)
        if chat is None:
            chat = self.encoded[messages] = self.generator.encode_chat(messages)
        return chat

    def length(self, messages: tuple[Message, ...]) -> int:
        return len(self.encode(messages).tokens)

    def has_room(self, messages: tuple[Message, ...]) -> bool:
        return self.length(messages) <= self.tokens

    def has_time(self, messages: tuple[Message, ...]) -> bool:
        if not self.seconds:
            return True
        takes = self.generator.reading_s(self.encode(messages))
        return takes is None or takes <= self.seconds

    def holds(self, messages: tuple[Message, ...]) -> bool:
        return self.has_room(messages) and self.has_time(messages)


def assemble(
    question: str,
    *,
    sources: Sequence[Source],
    history: Sequence[Turn],
    generator: Generator,
    settings: GenerationSettings,
    question_cut: bool = False,
) -> Prompt:
    """The prompt for ``sources`` (at least one). Raises UsageError when the context holds no question."""
    limits = _Limits.of(generator, settings)
    quote = " ".join(sources[0].quote.split())
    continued = _continued(question, sources, history, limits, quote=quote)
    if continued is not None:
        messages, kept, marks = continued
        short = len(kept) < len(sources)
        return _prompt(messages, kept, sources, marks, limits, settings, question_cut=question_cut, short_of_time=short)
    if not limits.has_room(_messages(_numbered(sources[:1]), (), question, quote=quote)):
        quote = ""  # the first thing to go: its words stand in the source

    def conversation(
        sources: Sequence[Source], turns: Sequence[Turn] = (), asked: str | None = None
    ) -> tuple[Message, ...]:
        return _messages(_numbered(sources), turns, question if asked is None else asked, quote=quote)

    asked = question
    kept = list(sources[:1])
    short_of_time = False
    if not limits.has_room(conversation(kept)):
        bare = limits.length(conversation((), (), ""))
        # Half of the room is the question's at most, so that a source has the other.
        half = bare + max(1, (limits.tokens - bare) // 2)
        asked = _cut_question(question, lambda cut: limits.length(conversation((), (), cut)) <= half)
    if not limits.holds(conversation(kept, (), asked)):
        short_of_time = limits.has_room(conversation(kept, (), asked))
        kept = [_shortened_first(sources[0], question, limits, lambda source: conversation([source], (), asked))]
    else:
        count = most = _most(len(sources), lambda n: limits.has_room(conversation(sources[:n], (), asked)))
        while count > 1 and not limits.has_time(conversation(sources[:count], (), asked)):
            count -= 1
        short_of_time = count < most
        kept = list(sources[:count])
        if count < len(sources):
            part = _shortened(sources[count], question, lambda one: limits.holds(conversation([*kept, one], (), asked)))
            kept += [part] if part is not None else []
    turns = _fitting_history(history, lambda turns: conversation(kept, turns, asked), limits)
    return _prompt(
        conversation(kept, turns, asked),
        kept,
        sources,
        _marks(kept),
        limits,
        settings,
        question_cut=question_cut or asked != question,
        short_of_time=short_of_time,
        history_dropped=len(history) - len(turns),
    )


def opening_messages() -> tuple[Message, ...]:
    """What every prompt begins with: the model can read it before anything is asked."""
    return (Message("system", (INSTRUCTION,)),)


def _prompt(
    messages: tuple[Message, ...],
    kept: Sequence[Source],
    sources: Sequence[Source],
    marks: tuple[tuple[int, int], ...],
    limits: _Limits,
    settings: GenerationSettings,
    *,
    question_cut: bool,
    short_of_time: bool,
    history_dropped: int = 0,
) -> Prompt:
    """``kept`` are the first of ``sources``, some of them shortened."""
    chat = limits.encode(messages)
    return Prompt(
        tokens=chat.tokens,
        passages=chat.passages,
        opening=chat.opening,
        messages=messages,
        sources=tuple(kept),
        marks=marks,
        dropped=tuple(source.hit for source in sources[len(kept) :]),
        shortened=tuple(source.number for source in kept if source.spans),
        short_of_time=short_of_time,
        reading_s=limits.generator.reading_s(chat),
        history_dropped=history_dropped,
        answer_room=min(settings.answer_tokens, limits.context_tokens - len(chat.tokens)),
        question_cut=question_cut,
    )


def _continued(
    question: str, sources: Sequence[Source], history: Sequence[Turn], limits: _Limits, *, quote: str
) -> tuple[tuple[Message, ...], Sequence[Source], tuple[tuple[int, int], ...]] | None:
    """The conversation as the model has it, with this question behind it; None when there is none or it is full. Of the
    sources as many as there is time for: beginning anew would take longer."""
    before = history[-1].messages if history else ()
    if not before:
        return None
    had = [part for message in before for part in message.parts if isinstance(part, Passage)]
    place = {(passage.key, passage.text): number for number, passage in enumerate(had, start=1)}
    for count in range(len(sources), 0, -1):
        known, new = [], []
        for source in _in_order(sources[:count]):
            number = place.get((_key(source.hit.chunk, source.spans), passage_text(source.hit.chunk, source.spans)))
            if number is None:
                new.append(source)
            else:
                known.append((number, source.number))
        messages = (*before, _asking(_numbered(new, ordered=True, first=len(had) + 1), question, quote=quote))
        if not limits.has_room(messages):
            return None
        if count == 1 or limits.has_time(messages):
            added = ((number, source.number) for number, source in enumerate(new, start=len(had) + 1))
            return messages, sources[:count], (*known, *added)
    return None


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
    return tuple(
        passage_of(source.hit.chunk, number, source.spans) for number, source in enumerate(in_order, start=first)
    )


def passage_of(chunk: StoredChunk, number: int, spans: Sequence[tuple[int, int]] = ()) -> Passage:
    """A chunk as a passage of the prompt, under that number; with ``spans``, only these sentences of it."""
    heading = chunk.chunk.heading_path[-1] if chunk.chunk.heading_path else ""
    title = chunk.title if heading in ("", chunk.title) else f"{chunk.title}: {heading}"
    return Passage(
        header=f"[{number}] {title}\n",
        home_header=f"[1] {title}\n",
        text=passage_text(chunk, spans),
        key=_key(chunk, spans),
        chunk_id=chunk.id,
    )


def _key(chunk: StoredChunk, spans: Sequence[tuple[int, int]]) -> str:
    """What names the state of its text; a part of it has none."""
    return "" if spans else chunk.kv_key


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
    history: Sequence[Turn], conversation: Callable[[Sequence[Turn]], tuple[Message, ...]], limits: _Limits
) -> tuple[Turn, ...]:
    """The newest turns for which there is room and time, whole and in order."""
    if not history:
        return ()
    allowed = min(limits.tokens, limits.length(conversation(())) + _HISTORY_TOKENS)

    def fits(count: int) -> bool:
        messages = conversation(history[-count:])
        return limits.length(messages) <= allowed and limits.has_time(messages)

    count = _most(len(history), fits)
    return tuple(history[-count:]) if count else ()


def _shortened(
    source: Source, question: str, fits: Callable[[Source], bool], shares: Sequence[float] = _SHARES
) -> Source | None:
    """The source in those of its best sentences that fit, by the first of ``shares``; None where none does, or none
    says anything."""
    text = source.hit.chunk.chunk.text
    whole = sum(end - start for start, end in source.spans) or len(text)
    tried: set[tuple[tuple[int, int], ...]] = {(), source.spans}
    for share in shares:
        most = int(whole * share)
        spans = shortened(text, question=question, fits=lambda length, most=most: length <= most)  # type: ignore[misc]
        if spans not in tried and fits(part := replace(source, spans=spans)):
            return part
        tried.add(spans)
    return None


def _shortened_first(
    source: Source, question: str, limits: _Limits, conversation: Callable[[Source], tuple[Message, ...]]
) -> Source:
    """The best source in what fits of it: its best sentences, or its beginning. Room there must be; when the time is
    too short for a single sentence, it takes the time that it takes."""

    def has_room(source: Source) -> bool:
        return limits.has_room(conversation(source))

    part = _shortened(source, question, lambda one: limits.holds(conversation(one)))
    if part is None and has_room(source):
        return _shortened(source, question, has_room, _SHARES[::-1]) or source
    return part or _shortened(source, question, has_room) or _beginning(source, has_room)


def _beginning(source: Source, fits: Callable[[Source], bool]) -> Source:
    """As many whole sentences of the source as fit; words, when not even one does."""
    text = source.hit.chunk.chunk.text
    start = len(text) - len(text.lstrip())
    for ends in ([end for _, end in sentence_spans(text)], [match.end() for match in re.finditer(r"\S+", text)]):
        parts = [replace(source, spans=((start, end),)) for end in ends]
        count = _most(len(parts), lambda n, parts=parts: fits(parts[n - 1]))  # type: ignore[misc]
        if count:
            return parts[count - 1]
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
    if most and holds(most):  # nearly always
        return most
    low, high = 0, max(0, most - 1)
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
