"""The prompt of a made-up question, laid out as the program lays out a real one: for the gate of splicing."""

from __future__ import annotations

import dataclasses
import hashlib

from edgerag.ask.prompt import assemble
from edgerag.ask.quotes import to_sources
from edgerag.config import GenerationSettings
from edgerag.engine.tuning.facts import FactQuestion
from edgerag.engine.tuning.gate import Layout
from edgerag.types import Chunk, EncodedChat, Generator, Hit, Scores, StoredChunk

_UNSCORED = Scores(keyword=None, keyword_rank=None, vector=None, vector_rank=None, fused=0.0)


def fact_layout(settings: GenerationSettings) -> Layout:
    """A layout for :func:`edgerag.engine.tuning.gate.run_gate` under these settings."""

    unhurried = dataclasses.replace(settings, reading_s=0)  # what is compared has to be the same for all

    def layout(question: FactQuestion, generator: Generator) -> EncodedChat:
        sources = to_sources(_hits(question), question=question.question)
        prompt = assemble(question.question, sources=sources, history=(), generator=generator, settings=unhurried)
        return EncodedChat(prompt.tokens, prompt.passages)

    return layout


def _hits(question: FactQuestion) -> list[Hit]:
    hits = []
    for passage in question.passages:
        digest = hashlib.sha256(passage.text.encode()).hexdigest()
        number = int(digest[:8], 16)  # the order of the library, which has nothing to do with the rank
        chunk = Chunk(
            ordinal=0,
            start=0,
            end=len(passage.text),
            text=passage.text,
            heading_path=(),
            page_first=None,
            page_last=None,
            line_first=1,
            line_last=1,
            token_count=0,
        )
        stored = StoredChunk(
            id=number,
            document_id=number,
            path=f"{digest[:8]}.txt",
            title=passage.title,
            media_type="text/plain",
            chunk=chunk,
            kv_key=f"doc-{digest[:16]}-chunk-0-v1",
        )
        hits.append(Hit(stored, _UNSCORED))
    return hits
