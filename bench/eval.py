"""Is the right passage found, and is it said when there is none? ``edgerag eval`` itself on public data sets.

    python bench/eval.py --data DIR [--sets cranfield,xquad-en,...] [--half report] [--foreign cranfield:xquad-en,...]

Sets in SQuAD's form are given to the program as they are published; the others are written as BEIR folders first.
``--foreign A:B`` also asks the questions of B over the documents of A. EDGERAG_BENCH_CACHE names a folder for what can
be made again (the first of a PATH-like list; default: .cache/bench). With ``--out`` each result is kept with its
questions, for `edgerag eval compare`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
from record import CHECKOUT, record

DEFAULT_SETS = ("scifact", "cranfield", "xquad-en", "xquad-zh", "xquad-de", "xquad-ru", "cmrc2018", "pubmedqa", "tatqa")
DEFAULT_FOREIGN = tuple(f"cranfield:xquad-{language}" for language in ("en", "de", "ru", "zh"))
# Constants are tuned on the training part of these, so that all their questions are reported of.
WITH_TRAINING_PART = ("scifact",)
# Of a result these are kept in the record: the rest is the same for all sets, or too long.
_KEPT = ("set", "documents", "chunks", "passages", "embedder", "chat", "figures")


def main() -> None:
    parser = argparse.ArgumentParser(description="Judges search, refusal and answers by `edgerag eval`.")
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--sets", default=",".join(DEFAULT_SETS), help=f"of {', '.join(datasets.NAMES)}")
    parser.add_argument("--half", choices=("all", "tune", "report"), default="report")
    parser.add_argument("--foreign", default=",".join(DEFAULT_FOREIGN), metavar="A:B,...")
    parser.add_argument("--limit", type=int, help="questions of each set at most")
    parser.add_argument("--answers", action="store_true", help="let the chat model write")
    parser.add_argument("--whole", action="store_true", help="keep each document as one passage")
    parser.add_argument("--out", type=Path, help="folder for each result with its questions")
    parser.add_argument("--json", type=Path, help="where the record goes (default: bench/results)")
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    pairs = [tuple(pair.split(":")) for pair in arguments.foreign.split(",") if pair]
    options = ["--limit", str(arguments.limit)] if arguments.limit else []
    options += [f"--{name}" for name in ("answers", "whole") if getattr(arguments, name)]
    figures: dict[str, Any] = {}
    for name in arguments.sets.split(","):
        strangers = [other for own, other in pairs if own == name]
        out = ["--out", str(arguments.out / name)] if arguments.out else []
        half = "all" if arguments.half == "report" and name in WITH_TRAINING_PART else arguments.half
        options_of_set = ["--half", half, *options, *out]
        result = evaluate(set_path(name, data), [set_path(other, data) for other in strangers], options_of_set)
        figures[name] = {key: result[key] for key in _KEPT}
        figures[name]["figures"].pop("hit_curve")
        print_row(name, figures[name]["figures"])
    parameters = {key: getattr(arguments, key) for key in ("half", "limit", "answers", "whole")}
    print(record("eval", figures, parameters=parameters, file=arguments.json))


def evaluate(path: Path, foreign: Sequence[Path], options: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "edgerag", "eval", str(path), *options, "--cache", str(cache() / "eval"), "--json"]
    command += [word for other in foreign for word in ("--foreign", str(other))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def set_path(name: str, data: Path) -> Path:
    """What the program is given: the published file, or a BEIR folder written from it."""
    return datasets.squad_file(name, data) or write_beir(datasets.load(name, data), cache() / "beir" / name)


def write_beir(data_set: datasets.DataSet, folder: Path) -> Path:
    """The set as a BEIR folder. The order of the queries stays, and with it which half each belongs to."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    known = {text.id for text in data_set.texts}
    _write_lines(folder / "corpus.jsonl", [{"_id": t.id, "title": t.title, "text": t.text} for t in data_set.texts])
    _write_lines(
        folder / "queries.jsonl",
        [
            {"_id": str(number), "text": query.text, "metadata": {"answers": [query.answer] if query.answer else []}}
            for number, query in enumerate(data_set.queries)
        ],
    )
    judged = ["query-id\tcorpus-id\tscore"]
    for number, query in enumerate(data_set.queries):
        # Cranfield judges a document that has no text.
        judged += [f"{number}\t{document}\t1" for document in sorted(query.relevant & known)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n", encoding="utf-8")
    return folder


def cache() -> Path:
    folders = [Path(folder) for folder in os.environ.get("EDGERAG_BENCH_CACHE", "").split(os.pathsep) if folder]
    return folders[0] if folders else CHECKOUT / ".cache" / "bench"


def print_row(name: str, figures: dict[str, Any]) -> None:
    stages = "   ".join(
        f"{stage} {values['hit@1']:.3f} / {values['ndcg@10']:.3f}" for stage, values in figures["stages"].items()
    )
    refusal = figures["refusal"]
    strangers = "".join(f"   {other} {group['answered']:.3f}" for other, group in refusal["foreign"].items())
    print(f"{name:10} {figures['judged']:5} questions   hit@1 / nDCG@10:   {stages}")
    print(f"{'':10} refused {refusal['answerable_refused']:.3f}" + (f"   answered:{strangers}" if strangers else ""))
    sys.stdout.flush()


def _write_lines(file: Path, records: Sequence[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")


if __name__ == "__main__":
    main()
