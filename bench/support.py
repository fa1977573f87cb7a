"""Are invented sentences told from true ones? What is marked "unsupported" of sentences with a known label.

    python bench/support.py --data DIR [--languages en,de,ru,zh] [--json FILE]

For every XQuAD question the sources are those that the program itself selects; a question whose own paragraph is
not among them is left out. True sentences are made of the gold answer in three forms: the answer alone
("short"), put into the words of the question ("statement"), and the part of its sentence around it ("clause").
False ones are made of those: one digit of a number changed (apart: whether that number stands in the sources
for something else), a name exchanged for one of another article, and whole sentences of another article
("other") and of another paragraph of the same one that is no source ("neighbour"). Constants are tuned on the
even questions, the odd ones are reported. The embedder is asked where it knows the language.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import datasets
from instant import instant_answer
from libraries import RememberingEmbedder, library_of
from record import record
from retrieval import default_embedder

from edgerag.ask.check import check_answer
from edgerag.ask.quantities import quantities
from edgerag.ask.words import sentence_spans
from edgerag.types import InstantAnswer

LANGUAGES = ("en", "de", "ru", "zh")
_SEED = 7
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"(?:the )?[A-Z][\w'’.-]+(?: (?:of|de|the|and|von|van|[A-Z][\w'’.-]*))*")
_QUESTION = re.compile(
    r"(?:in |at |on |by |from |for |to |with )?"
    r"(who|whom|what|which|when|where|why|how many|how much|how long|how)\b\s*(.*)",
    re.IGNORECASE,
)
_AUXILIARIES = tuple("did do does is are was were has have had can could will would should may might".split())  # noqa: SIM905
Kind = Literal["true", "number", "number_elsewhere", "name", "other", "neighbour"]


@dataclass(frozen=True, slots=True)
class Case:
    """One sentence and what it is; ``question`` is the number of the question whose sources it is checked against."""

    question: int
    kind: Kind
    form: str
    sentence: str


def main() -> None:
    parser = argparse.ArgumentParser(description="Judges how sentences are looked up in their sources.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--languages", default=",".join(LANGUAGES), help=f"of {', '.join(datasets.XQUAD_LANGUAGES)}")
    parser.add_argument("--half", choices=("tune", "report"), default="report")
    parser.add_argument("--show", default="", help="print the sentences of this kind that are judged wrongly")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    model = default_embedder()
    english = datasets.load("xquad-en", data)
    figures: dict[str, Any] = {}
    for language in arguments.languages.split(","):
        data_set = datasets.load(f"xquad-{language}", data)
        embedder = RememberingEmbedder(model, data_set.name)
        with library_of(data_set, embedder) as library:
            found = [instant_answer(query.text, library, embedder) for query in data_set.queries]
        cases = list(make_cases(data_set, english, found, language))
        parity = ("tune", "report").index(arguments.half)
        chosen = [case for case in cases if case.question % 2 == parity]
        knows = language in embedder.identity.languages
        marked = [is_marked(case, data_set, found, embedder if knows else None) for case in chosen]
        embedder.save()
        figures[language] = rates(chosen, marked)
        print(language, figures[language], flush=True)
        for case, is_unsupported in zip(chosen, marked, strict=True):
            if case.kind == arguments.show and is_unsupported == (case.kind == "true"):
                print("   ", case.form, "|", case.sentence)
    parameters = {"half": arguments.half, "seed": _SEED, "embedder": model.identity.name}
    print(record("support", figures, parameters=parameters, file=arguments.json))


def is_marked(
    case: Case,
    data_set: datasets.DataSet,
    found: Sequence[InstantAnswer | None],
    embedder: RememberingEmbedder | None,
) -> bool:
    """Whether any part of the sentence is marked as unsupported."""
    event = found[case.question]
    assert event is not None, "cases are made of questions with sources"
    checked = check_answer(
        case.sentence,
        sources=event.sources,
        question=data_set.queries[case.question].text,
        instant=event.sentences,
        embed=None if embedder is None else embedder.embed_passages,
    )
    return any(sentence.support == "unsupported" for sentence in checked)


def rates(cases: Sequence[Case], marked: Sequence[bool]) -> dict[str, Any]:
    """The share that is marked, by kind and form; of true sentences it is the false alarms."""
    counts: Counter[tuple[str, str]] = Counter()
    hits: Counter[tuple[str, str]] = Counter()
    for case, is_unsupported in zip(cases, marked, strict=True):
        for form in ("all", case.form):
            counts[case.kind, form] += 1
            hits[case.kind, form] += is_unsupported
    share: dict[str, dict[str, float | int]] = {}
    for kind, form in sorted(counts):
        share.setdefault(kind, {})[form] = round(hits[kind, form] / counts[kind, form], 4)
        share[kind]["sentences"] = counts[kind, "all"]
    false = [is_unsupported for case, is_unsupported in zip(cases, marked, strict=True) if case.kind != "true"]
    numbers = [m for case, m in zip(cases, marked, strict=True) if case.kind.startswith("number")]
    return {
        "false_alarms": share["true"]["all"],
        "recall_numbers": round(sum(numbers) / len(numbers), 4),
        "recall_names": share["name"]["all"],
        # Of the sentences that are marked. There are about as many false ones as true ones here.
        "precision": round(sum(false) / (sum(false) + hits["true", "all"]), 4),
        "marked": share,
    }


# ---------------------------------------------------------------- sentences with a label


def make_cases(
    data_set: datasets.DataSet, english: datasets.DataSet, found: Sequence[InstantAnswer | None], language: str
) -> Iterator[Case]:
    """The true and the false sentences. XQuAD's questions are the same in every language, so that the English
    answers tell in all of them which are names."""
    draw = random.Random(_SEED)
    texts = {text.id: text for text in data_set.texts}
    own = [texts[next(iter(query.relevant))] for query in data_set.queries]
    names = [n for n, query in enumerate(english.queries) if _NAME.fullmatch(query.answer)]
    for number, query in enumerate(data_set.queries):
        event = found[number]
        sources = [] if event is None else [source.hit.chunk.chunk.text for source in event.sources]
        if own[number].text not in sources:
            continue
        forms = true_forms(query, own[number].text, language)
        strangers = [n for n in names if own[n].article != own[number].article]
        for form, sentence in forms.items():
            yield Case(number, "true", form, sentence)
            yield from _with_another_number(number, form, sentence, query.answer, sources, draw)
            if number in names:
                exchanged = _replaced(sentence, query.answer, data_set.queries[draw.choice(strangers)].answer)
                if exchanged != sentence:
                    yield Case(number, "name", form, exchanged)
        elsewhere: Mapping[Kind, list[int]] = {
            "other": [n for n, text in enumerate(own) if text.article != own[number].article],
            "neighbour": [
                n for n, text in enumerate(own) if text.article == own[number].article and text.text not in sources
            ],
        }
        for kind, numbers in elsewhere.items():
            if numbers:
                other = draw.choice(numbers)
                answer = data_set.queries[other].answer
                if stated := _sentence_with(own[other].text, answer):
                    yield Case(number, kind, "clause", _clause(stated, answer))


def true_forms(query: datasets.Query, paragraph: str, language: str) -> dict[str, str]:
    """The gold answer in three true sentences."""
    answer = query.answer
    bare = query.text.strip().rstrip("?？؟ ")
    forms = {
        "short": f"{_capital(answer)}.",
        "statement": _statement(bare, answer) if language == "en" else f"{bare}: {answer}.",
    }
    if stated := _sentence_with(paragraph, answer):
        forms["clause"] = _clause(stated, answer)
    return forms


def _statement(question: str, answer: str) -> str:
    """An English question turned into a statement, as well as a rule can."""
    match = _QUESTION.match(question)
    if match is None:
        return f"{question}: {answer}."
    asked, words = match[1].lower(), match[2].split()
    place = next((n for n, word in enumerate(words[:6]) if word.lower() in _AUXILIARIES), None)
    if place is None:
        return _capital(f"{answer} {match[2]}." if asked in ("who", "what") else f"{match[2]} {answer}.".strip())
    noun, auxiliary, rest = " ".join(words[:place]), words[place], " ".join(words[place + 1 :])
    if not rest:
        return _capital(f"{answer} {auxiliary} {noun}.")
    if auxiliary in ("did", "do", "does"):
        return _capital(f"{rest} {answer} {noun}".strip() + ".")
    if noun and asked in ("who", "what", "which", "how many"):
        return _capital(f"{answer} {noun} {auxiliary} {rest}.")
    return _capital(f"{rest} {auxiliary} {answer}.")


def _sentence_with(paragraph: str, answer: str) -> str:
    return next((paragraph[a:b] for a, b in sentence_spans(paragraph) if answer in paragraph[a:b]), "")


def _clause(sentence: str, answer: str) -> str:
    """The sentence without its last or its first clause, if the answer is in the rest."""
    parts = re.split(r"(?<=[,;])\s+|(?<=[，；])", sentence)
    joint = "" if re.search("[，；。]", sentence) else " "
    if len(parts) >= 3 and answer in joint.join(parts[:-1]):
        return joint.join(parts[:-1]).rstrip(",;，； ") + ("." if joint else "。")
    if len(parts) >= 3 and answer in joint.join(parts[1:]):
        return _capital(joint.join(parts[1:]))
    return sentence


def _with_another_number(
    number: int, form: str, sentence: str, answer: str, sources: Sequence[str], draw: random.Random
) -> Iterator[Case]:
    """The sentence with one digit changed: of the answer, or of anything in a clause."""
    if form == "clause":
        changed = _another_number(sentence, draw)
    else:
        other = _another_number(answer, draw)
        changed = other and _replaced(sentence, answer, other)
    if not changed or changed == sentence:
        return
    known = {value for text in sources for quantity in quantities(text) for value in quantity.values}
    before = {value for quantity in quantities(sentence) for value in quantity.values}
    new = {value for quantity in quantities(changed) for value in quantity.values} - before
    yield Case(number, "number" if new and not new & known else "number_elsewhere", form, changed)


def _another_number(text: str, draw: random.Random) -> str:
    """``text`` with one digit of one of its numbers changed; "" when there is none."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return ""
    match = draw.choice(found)
    places = [n for n, character in enumerate(match[0]) if character.isdigit()][-2:]
    place = match.start() + draw.choice(places)
    least = "1" if place == match.start() else "0"
    digit = draw.choice([d for d in "0123456789" if d != text[place] and d >= least])
    return text[:place] + digit + text[place + 1 :]


def _replaced(sentence: str, old: str, new: str) -> str:
    return sentence.replace(old, new) if old in sentence else sentence.replace(_capital(old), _capital(new))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    main()
