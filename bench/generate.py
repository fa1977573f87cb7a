"""The chat model beside plain llama-cpp-python, and how it answers: `edgerag bench generate`, kept as a result.

    python bench/generate.py [--model NAME|FILE] [--part NAME]... [--questions FILE] [--count N] [--json FILE]

The model runs as it was tuned on this machine (`edgerag models tune`, `--kv`), else as planned. ``--questions`` is a
file in SQuAD's form, such as XQuAD's English one.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from pathlib import Path

from record import CHECKOUT, record

from edgerag.config import load_settings
from edgerag.engine.catalog import Catalog
from edgerag.measure.generate import PARTS, bench_generate, subject_of
from edgerag.measure.questions import given_questions
from edgerag.ui import report


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures first words, prefill, decoding, cancelling, right answers.")
    parser.add_argument("--model", default="", help="a name from `models list`, or a file")
    parser.add_argument("--part", action="append", default=[], dest="parts", choices=tuple(PARTS))
    parser.add_argument("--questions", type=Path, help="a file in SQuAD's form")
    parser.add_argument("--count", type=int, default=200, help="how many of its questions (200)")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    catalog = Catalog(CHECKOUT / "models", CHECKOUT / "models" / "manifest.toml")
    settings = load_settings(CHECKOUT / "config.toml", os.environ, {"models": {"chat": arguments.model}})
    subject = subject_of(catalog, settings)
    questions = given_questions(arguments.questions, count=arguments.count) if arguments.questions else []
    figures = bench_generate(subject, questions=questions, parts=arguments.parts, progress=report.say)
    parameters = {
        "parts": arguments.parts or list(PARTS),
        "questions": arguments.questions.name if arguments.questions else "",
        "settings": dataclasses.asdict(subject.tuned),
    }
    print(record("bench_generate", figures, parameters=parameters, file=arguments.json))


if __name__ == "__main__":
    main()
