"""An answer that stopped before its end goes on where it ended: the same prompt, with what was written behind it.

Nothing is looked up again. The passages are those that the model had; where one of them is no longer what it was, the
answer cannot go on, because it would rest on words that are gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from edgerag.ask.shorten import joined
from edgerag.config import GenerationSettings
from edgerag.errors import UsageError
from edgerag.types import Generator, Message, Passage, Prompt, Source, StoredChunk, Unfinished

_LEAST_ROOM_TOKENS = 16  # less would end in the middle of a sentence again


@dataclass(frozen=True, slots=True)
class Resumed:
    """The prompt, and what the model has written behind it."""

    prompt: Prompt
    written: str


def with_texts(messages: Sequence[Message], chunks: Mapping[int, StoredChunk]) -> tuple[Message, ...]:
    """The messages with the text of passages that is kept in the library. Those of another key stay without."""
    return tuple(
        replace(m, parts=tuple(_with_text(p, chunks) if isinstance(p, Passage) else p for p in m.parts))
        for m in messages
    )


def _with_text(passage: Passage, chunks: Mapping[int, StoredChunk]) -> Passage:
    stored = chunks.get(passage.chunk_id)
    if passage.text or stored is None or stored.kv_key != passage.key:
        return passage
    return replace(passage, text=passage_text(stored))


def passage_text(stored: StoredChunk, spans: Sequence[tuple[int, int]] = ()) -> str:
    """A chunk as it stands in a prompt, behind its header; with ``spans``, only these sentences of it."""
    text = stored.chunk.text
    return f"{joined(text, spans) if spans else text}\n\n"


def current_sources(unfinished: Unfinished, chunks: Mapping[int, StoredChunk]) -> tuple[Source, ...]:
    """The sources with the chunks of the library. Raises UsageError when one is not what it was."""
    sources = []
    for source in unfinished.sources:
        stored = chunks.get(source.hit.chunk.id)
        own = source.hit.chunk.chunk
        if stored is not None and stored.chunk.text != own.text and stored.chunk.text in own.text:
            sources.append(source)  # with the rest of a sentence (stitch.py)
            continue
        offset = source.quote_start - source.hit.chunk.chunk.start
        if stored is None or not stored.chunk.text.startswith(source.quote, offset):
            raise _changed()
        sources.append(replace(source, hit=replace(source.hit, chunk=stored), quote_start=stored.chunk.start + offset))
    return tuple(sources)


def resume(
    unfinished: Unfinished,
    *,
    sources: tuple[Source, ...],
    chunks: Mapping[int, StoredChunk],
    generator: Generator,
    settings: GenerationSettings,
) -> Resumed:
    """Raises UsageError when a passage is not what it was, or the context is full."""
    *before, last = with_texts(unfinished.messages, chunks)
    if any(isinstance(part, Passage) and not part.text for message in before for part in message.parts):
        raise _changed()
    written = "".join(map(str, last.parts))
    chat = generator.encode_chat(before)
    tokens = (*chat.tokens, *generator.encode_text(written))
    context = min(settings.context_tokens, generator.context_tokens)
    room = min(settings.answer_tokens, context - len(tokens))
    if room < _LEAST_ROOM_TOKENS:
        raise UsageError(
            "The model's context is full: this answer cannot go on.", remedy="Raise generation.context_tokens."
        )
    prompt = Prompt(
        tokens=tokens,
        passages=chat.passages,
        messages=tuple(before),
        sources=sources,
        marks=unfinished.marks,
        dropped=(),
        shortened=tuple(source.number for source in sources if source.spans),
        short_of_time=False,
        reading_s=generator.reading_s(chat),
        history_dropped=0,
        answer_room=room,
        question_cut=False,
        opening=chat.opening,
    )
    return Resumed(prompt, written)


def _changed() -> UsageError:
    return UsageError(
        "The documents have changed since: this answer cannot go on where it ended.", remedy="Ask again for a new one."
    )
