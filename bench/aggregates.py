"""Which questions are taken for questions about the collection? False alarms on questions that have one answer.

    python bench/aggregates.py --data DIR [--json FILE]

Every question of XQuAD (12 languages), CMRC2018 and SciFact has its answer in one passage, so none is to be counted:
the number that is, and apart for those that ask how many. What is to be recognised stands in
tests/unit/ask/test_aggregate.py.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import datasets
from record import record

from edgerag.ask.aggregate import collection_question

# "How many" as the languages of XQuAD have it.
HOW_MANY = {
    "en": "how many",
    "de": "wie viele",
    "es": "cuánt",
    "ro": "câ",
    "tr": "kaç",
    "vi": "bao nhiêu",
    "ru": "сколько",
    "el": "πόσ",
    "zh": "多少",
    "th": "กี่",
    "hi": "कितन",
    "ar": "كم",
}
SETS = (*(f"xquad-{language}" for language in HOW_MANY), "cmrc2018", "scifact")


def main() -> None:
    parser = argparse.ArgumentParser(description="Judges what is taken for a question about the collection.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    figures: dict[str, Any] = {}
    for name in SETS:
        questions = [query.text for query in datasets.load(name, data).queries]
        taken = [question for question in questions if collection_question(question) is not None]
        how_many = HOW_MANY.get(name.removeprefix("xquad-"), "多少")
        counting = [question for question in questions if how_many in question.casefold()]
        figures[name] = {
            "questions": len(questions),
            "false_alarms": len(taken),
            "how_many": len(counting),
            "false_alarms_of_how_many": len(set(counting) & set(taken)),
        }
        print(f"{name:10} {json.dumps(figures[name])} {taken[:3] or ''}", flush=True)
    print(record("aggregates", figures, file=arguments.json))


if __name__ == "__main__":
    main()
