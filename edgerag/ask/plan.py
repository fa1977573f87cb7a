"""How a question will be answered: decided from the question and the settings alone.

Pure. What the stages need to know stands in the Plan, so that a trace of the plan explains the run. What is read
from the question is in kind.py, follow_up.py and aggregate.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from edgerag.ask.kind import entropy_bits, is_broad_question, kind_of, wanted_sources
from edgerag.ask.language import dominant_script, knows
from edgerag.config import RetrievalSettings
from edgerag.errors import UsageError
from edgerag.types import Plan, QuestionKind

# A question longer than this is a pasted document: its first words are what is asked, and every
# further word makes both legs slower and vaguer (an embedder reads some 250 tokens at most).
QUESTION_CHARACTERS = 2_000

KEYWORD_WEIGHT = 1.0
VECTOR_WEIGHT = 1.0
# For a question in Latin letters whose language the embedder was not trained for. So small that the
# vector leg changes no order of the keyword leg and only adds behind it what that did not find: any
# weight that can swap two ranks costs hit@1 in each of de, es, ro, tr, vi (docs/decisions/041).
VECTOR_WEIGHT_FOREIGN = 0.001
# One source takes about this many tokens of the prompt: the default chunk of 160 with its title.
_TOKENS_PER_SOURCE = 200

# Control characters and lone surrogates come from pastes and broken terminals, and mean nothing.
_UNSAYABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")

_NO_TEXT = re.compile("[\ud800-\udfff]")  # bytes that Python could not read as text


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it is worked with. ``cut`` is True when it was longer than is of use."""

    text: str
    cut: bool


def read_question(text: str) -> Question:
    """The question without what cannot be asked. Raises UsageError when nothing is left."""
    cleaned = _UNSAYABLE.sub(" ", text).strip()
    if not cleaned and _NO_TEXT.search(text):
        raise UsageError("The question is no text: its bytes are not UTF-8.", remedy="Type it again, or convert it.")
    if not cleaned:
        raise UsageError("The question is empty.", remedy='Ask in words, for example: edgerag ask "How do I …?"')
    if len(cleaned) <= QUESTION_CHARACTERS:
        return Question(cleaned, cut=False)
    head = cleaned[:QUESTION_CHARACTERS]
    at_space = head.rfind(" ", QUESTION_CHARACTERS * 3 // 4)  # no word is cut in two, if there are words
    return Question((head[:at_space] if at_space > 0 else head).rstrip(), cut=True)


@dataclass(frozen=True, slots=True)
class Outline:
    """What of a plan the words of the question say by themselves, before any is looked up."""

    searched: str  # the question, with what the conversation lent behind it
    script: str
    kind: QuestionKind
    vector_weight: float

    @property
    def words_first(self) -> bool:
        return self.kind in ("identifier", "keywords")

    @property
    def embeds_at_once(self) -> bool:
        """Whether the vector of the question is wanted whatever the keyword leg finds."""
        return self.vector_weight > 0 and not self.words_first


def outline(question: str, *, languages: Sequence[str], added: Sequence[str] = (), aggregate: bool = False) -> Outline:
    """For all as in :func:`make_plan`."""
    script = dominant_script(question)
    return Outline(
        searched=" ".join([question, *added]),
        script=script,
        kind=kind_of(question, follows=bool(added), aggregate=aggregate),
        vector_weight=_vector_weight(languages, script=script, question=question),
    )


def make_plan(
    question: str,
    *,
    settings: RetrievalSettings,
    languages: Sequence[str],
    terms: Callable[[str], tuple[str, ...]],
    room_tokens: int | None = None,
    weigh: Callable[[str], Mapping[str, float]] | None = None,
    added: Sequence[str] = (),
    aggregate: bool = False,
    outlined: Outline | None = None,
) -> Plan:
    """The plan for a question that :func:`read_question` gave.

    ``languages`` are those of the embedder that made the library, () when there is none to use;
    ``terms`` finds the content words and ``weigh`` their idf; ``room_tokens`` is what sources may take of the prompt.
    ``added`` are words that the conversation lent: a follow-up is searched with them behind it. ``aggregate`` says
    that documents or mentions are to be counted. ``outlined`` is the outline of the same, where it is made already.
    """
    known = outlined or outline(question, languages=languages, added=added, aggregate=aggregate)
    broad = is_broad_question(question)
    words = terms(known.searched)
    bits = entropy_bits(dict.fromkeys(words, 1.0).values() if weigh is None else weigh(known.searched).values())
    source_count = min(settings.source_count, wanted_sources(known.kind, broad=broad, bits=bits))
    if room_tokens is not None:
        source_count = max(1, min(source_count, room_tokens // _TOKENS_PER_SOURCE))
    candidate_count = max(settings.candidate_count, source_count)
    return Plan(
        question=known.searched,
        script=known.script,
        terms=words,
        source_count=source_count,
        candidate_count=candidate_count,
        keyword_weight=KEYWORD_WEIGHT,
        vector_weight=known.vector_weight,
        ef_search=max(settings.ef_search, candidate_count),
        kind=known.kind,
        words_first=known.words_first,
        broad=broad,
        entropy_bits=bits,
        most_sources=settings.source_count,
        room_tokens=room_tokens,
        added_words=tuple(added),
    )


def _vector_weight(languages: Sequence[str], *, script: str, question: str) -> float:
    if not languages:
        return 0.0
    known = knows(languages, script=script, text=question)
    if known is False:
        # Names and loan words in Latin letters still mean something to the embedder; another script
        # means nothing to it, and its vectors are noise.
        return VECTOR_WEIGHT_FOREIGN if script == "latin" else 0.0
    return VECTOR_WEIGHT
