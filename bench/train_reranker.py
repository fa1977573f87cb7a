"""Trains the reranker (edgerag/ask/rerank.py) and writes its weights beside it.

    python bench/train_reranker.py [--data DIR] [--hidden 48] [--epochs 30] [--seeds 6] [--check]

Trained on the even questions of each set and on the training part of SciFact, judged on the odd ones and on the
validation part, each set with its documents whole and cut into passages as an ingest cuts them. The loss is the cross
entropy of a softmax over the candidates of a question (ListNet, Cao et al. 2007); each set weighs as WEIGHTS says,
however many questions it has. Some questions come again with few candidates, as a small library or a filter gives,
some without vectors, as in a language that the embedder does not know, and some without a latent space, as of a library
that an older version of this program wrote. Libraries and features are kept in the cache;
``--check`` trains and writes nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from eval import cache
from numpy.typing import NDArray
from record import CHECKOUT, record
from retrieval import default_embedder

from edgerag.ask.exact import exact_strings
from edgerag.ask.features import NAMES, Found, Nearness, features
from edgerag.ask.plan import make_plan, read_question
from edgerag.ask.rank import RERANKED, exact_candidates, fused_candidates, nearness_of
from edgerag.ask.rerank import MOST_DEVIATIONS, WEIGHTS_FILE, Network, shipped
from edgerag.ask.retrieve import retrieve
from edgerag.config import ChunkSettings, RetrievalSettings
from edgerag.index.hnsw.residency import Residency
from edgerag.index.library import Library, open_library
from edgerag.measure.eval.corpus import Passages, corpus_folder, fill, is_made
from edgerag.measure.eval.sets import QuestionSet, Text
from edgerag.telemetry.stopwatch import Stopwatch
from edgerag.types import Embedder, LatentEvidence, WordEvidence

# By how much a set counts. What is like nothing else is worth more than one language more of the same paragraphs.
WEIGHTS = {
    "scifact-train": 2.0, "cranfield": 2.0, "pubmedqa": 0.5, "tatqa": 1.0, "cmrc2018": 0.5,
    "xquad-en": 1.0, "xquad-de": 0.4, "xquad-ru": 0.4, "xquad-zh": 0.4, "xquad-es": 0.3, "xquad-tr": 0.3,
    "xquad-vi": 0.3, "xquad-th": 0.3, "xquad-ar": 0.3,
}  # fmt: skip
REPORTED = ("scifact", *WEIGHTS)
# Every so many questions to train on come again with few candidates, and again without vectors.
_FEW_EVERY, _WORDS_EVERY = 3, 5
_FEWEST, _MOST_OF_FEW = 2, 16
_QUESTIONS = 1_000  # of one set, spread evenly


@dataclasses.dataclass(frozen=True, slots=True)
class Example:
    """One question: its candidates' features and relevance, and how many relevant documents there are. ``again`` says
    that it is there in another form, too."""

    rows: NDArray[np.float32]
    relevant: NDArray[np.float32]
    documents: NDArray[np.int64]
    wanted: int
    again: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the data sets (default: EDGERAG_BENCH_DATA)")
    parser.add_argument("--hidden", type=int, default=48)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--decay", type=float, default=0.2)
    parser.add_argument("--seeds", type=int, default=6, help="networks whose scores are added")
    parser.add_argument("--check", action="store_true", help="write no weights")
    parser.add_argument("--features", action="store_true", help="make the features and stop")
    parser.add_argument(
        "--swap", action="store_true", help="train on the half to report of and judge the other; writes no weights"
    )
    arguments = parser.parse_args()
    data = datasets.data_folder(arguments.data)
    model = default_embedder()
    forms: tuple[Passages, ...] = ("whole", "chunked")
    sets = {(name, form): examples_of(name, form, data, model) for name in REPORTED for form in forms}
    if arguments.features:
        return
    began = time.monotonic()
    tuned = [
        (example, WEIGHTS[name] / len(chosen))
        for (name, _), examples in sets.items()
        if name in WEIGHTS
        for chosen in [usable(to_train_on(name, examples, swap=arguments.swap))]
        for example in chosen
    ]
    network = train(
        tuned, hidden=arguments.hidden, epochs=arguments.epochs, decay=arguments.decay, seeds=arguments.seeds
    )
    print(f"trained in {time.monotonic() - began:.0f} s on {len(tuned)} lists")
    figures = judge(sets, network, swap=arguments.swap)
    if not (arguments.check or arguments.swap):
        write(network)
    parameters = {name: getattr(arguments, name) for name in ("hidden", "epochs", "decay", "seeds", "swap")}
    print(record("reranker_swapped" if arguments.swap else "reranker", figures, parameters=parameters))


def examples_of(name: str, passages: Passages, data: Path, model: Embedder) -> list[Example]:
    """From the cache, or made."""
    file = cache() / "reranker" / f"{name}-{passages}-{model.identity.weights_sha256[:12]}.npz"
    if file.exists():
        with np.load(file, allow_pickle=False) as stored:
            if tuple(stored["names"].tolist()) == NAMES:
                return list(_unpacked(stored))
    began = time.monotonic()
    examples = list(_make_examples(name, passages, data, model))
    file.parent.mkdir(parents=True, exist_ok=True)
    lengths = [len(example.rows) for example in examples]
    np.savez_compressed(
        file,
        names=np.array(NAMES),
        lengths=np.array(lengths),
        wanted=np.array([example.wanted for example in examples]),
        again=np.array([example.again for example in examples]),
        rows=np.concatenate([example.rows for example in examples]),
        relevant=np.concatenate([example.relevant for example in examples]),
        documents=np.concatenate([example.documents for example in examples]),
    )
    print(f"{name} {passages}: {len(examples)} questions in {time.monotonic() - began:.0f} s", flush=True)
    return examples


def _unpacked(stored: Any) -> Iterator[Example]:
    ends = np.cumsum(stored["lengths"])
    rows, relevant, documents = stored["rows"], stored["relevant"], stored["documents"]
    for start, end, wanted, again in zip(
        [0, *ends[:-1]], ends, stored["wanted"].tolist(), stored["again"].tolist(), strict=True
    ):
        yield Example(rows[start:end], relevant[start:end], documents[start:end], wanted, again)


def _make_examples(name: str, passages: Passages, data: Path, model: Embedder) -> Iterator[Example]:
    chosen = datasets.load(name, data)
    step = max(1, len(chosen.queries) // (2 * _QUESTIONS))
    # Pairs stay together, so that even ones stay even.
    pairs = [chosen.queries[i : i + 2] for i in range(0, len(chosen.queries), 2)][::step]
    random = np.random.default_rng(0)
    with library_for(chosen, passages, model) as library:
        for number, query in enumerate(query for pair in pairs for query in pair):
            candidates = _candidates_of(query, library, model)
            yield candidates.example()
            if name != "scifact-train" and number % 2:
                continue  # one to report of
            if number % (2 * _FEW_EVERY) == 0:
                yield from candidates.few(random)
            if number % (2 * _WORDS_EVERY) == 0 and candidates.nearness is not None:
                yield dataclasses.replace(candidates, nearness=None).example(again=True)
            if number % (2 * _WORDS_EVERY) == 2 and candidates.latent is not None:
                yield dataclasses.replace(candidates, latent=None).example(again=True)


def library_for(chosen: datasets.DataSet, passages: Passages, model: Embedder) -> Library:
    texts = tuple(Text(text.id, text.title, text.text) for text in chosen.texts)
    questions = QuestionSet(chosen.name.removesuffix("-train"), texts, ())
    chunks = ChunkSettings()
    folder = corpus_folder(cache() / "eval", questions, model.identity, passages=passages, chunks=chunks)
    folder.parent.mkdir(parents=True, exist_ok=True)
    residency = Residency(1_000_000_000)
    if not is_made(folder):
        with open_library(folder, mode="write", residency=residency, identity=model.identity) as library:
            fill(
                library,
                texts,
                passages=passages,
                chunks=chunks,
                embedder=lambda: model,
                progress=lambda _: None,
                cancelled=lambda: False,
            )
    return open_library(folder, mode="read", residency=residency)


@dataclasses.dataclass(frozen=True, slots=True)
class _Candidates:
    """What was found for a question, and which of it is right."""

    found: Sequence[Found]
    words: WordEvidence
    nearness: Nearness | None
    latent: LatentEvidence | None
    relevant: NDArray[np.float32]
    documents: NDArray[np.int64]
    wanted: int

    def example(self, *, again: bool = False) -> Example:
        rows = features(self.found, words=self.words, nearness=self.nearness, latent=self.latent)
        return Example(rows, self.relevant, self.documents, self.wanted, again)

    def few(self, random: np.random.Generator) -> Iterator[Example]:
        """The question with few of its candidates, a right one among them."""
        right = np.flatnonzero(self.relevant)
        if not len(right) or len(self.found) <= _FEWEST:
            return
        size = int(random.integers(_FEWEST, min(_MOST_OF_FEW, len(self.found)) + 1))
        chosen = {int(random.choice(right)), *random.permutation(len(self.found))[:size].tolist()}
        kept = sorted(chosen)
        found = _ranked_anew([self.found[place] for place in kept])
        latent = self.latent
        if latent is not None:
            latent = LatentEvidence(latent.cosines[kept], latent.alike[np.ix_(kept, kept)])
        few = dataclasses.replace(
            self, found=found, latent=latent, relevant=self.relevant[kept], documents=self.documents[kept]
        )
        yield few.example(again=True)


def _ranked_anew(found: Sequence[Found]) -> list[Found]:
    """With the ranks and the fused scores that they have among themselves."""
    ranks: dict[str, dict[int | None, int]] = {}
    for leg in ("keyword_rank", "vector_rank"):
        before = sorted(rank for rank in (getattr(each.scores, leg) for each in found) if rank is not None)
        ranks[leg] = {rank: place for place, rank in enumerate(before, start=1)}
    settings = RetrievalSettings()

    def anew(each: Found) -> Found:
        keyword, vector = (ranks[leg].get(getattr(each.scores, leg)) for leg in ranks)
        fused = sum(1 / (settings.rrf_k + rank) for rank in (keyword, vector) if rank is not None)
        return dataclasses.replace(
            each, scores=dataclasses.replace(each.scores, keyword_rank=keyword, vector_rank=vector, fused=fused)
        )

    return [anew(each) for each in found]


def _candidates_of(query: datasets.Query, library: Library, model: Embedder) -> _Candidates:
    settings = RetrievalSettings(vector_deadline_ms=0)
    plan = dataclasses.replace(
        make_plan(
            read_question(query.text).text,
            settings=settings,
            languages=library.identity.languages,
            terms=library.query_terms,
        ),
        words_first=False,
    )
    found = retrieve(plan, library=library, embedder=lambda: model, stopwatch=Stopwatch(), cancelled=lambda: False)
    exact, _ = exact_candidates(exact_strings(plan.question), found, library=library)
    fused = fused_candidates(plan, found, exact=exact, rrf_k=settings.rrf_k)[:RERANKED]
    ids = [each.chunk_id for each in fused]
    chunks = {chunk.id: chunk for chunk in library.chunks(ids)}
    names = [chunks[chunk_id].path.removeprefix("/") for chunk_id in ids]
    of_document = [name in query.relevant for name in names]
    answer = query.answer.casefold()
    holds = [
        right and bool(answer) and answer in chunks[chunk_id].chunk.text.casefold()
        for right, chunk_id in zip(of_document, ids, strict=True)
    ]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    words = library.word_evidence(plan.question, ids)
    return _Candidates(
        found=fused,
        words=words,
        latent=library.latent_evidence(words, ids),
        nearness=nearness_of(plan, found, library=library, ids=ids),
        relevant=np.array(holds if any(holds) else of_document, dtype=np.float32),
        documents=np.array([numbers[name] for name in names], dtype=np.int64),
        wanted=len(query.relevant),
    )


def to_train_on(name: str, examples: Sequence[Example], *, swap: bool) -> list[Example]:
    """The even questions, and what was made of them; with ``swap`` the odd ones."""
    once = [example for example in examples if not example.again]
    again = [example for example in examples if example.again]
    if name == "scifact-train":
        return [*once, *again]
    return once[1::2] if swap else [*once[0::2], *again]


def usable(examples: Sequence[Example]) -> list[Example]:
    return [example for example in examples if 0 < example.relevant.sum() < len(example.rows)]


# ---------------------------------------------------------------- training


def train(tuned: Sequence[tuple[Example, float]], *, hidden: int, epochs: int, decay: float, seeds: int) -> Network:
    rows = np.concatenate([example.rows for example, _ in tuned])
    mean, deviation = rows.mean(axis=0), rows.std(axis=0) + 1e-5
    lists = [
        (np.clip((e.rows - mean) / deviation, -MOST_DEVIATIONS, MOST_DEVIATIONS), e.relevant / e.relevant.sum(), weight)
        for e, weight in tuned
    ]
    scale = len(lists) / sum(weight for *_, weight in lists)
    networks = [
        _train_one(lists, hidden=hidden, epochs=epochs, decay=decay, scale=scale, random=np.random.default_rng(seed))
        for seed in range(seeds)
    ]
    return Network(
        mean=mean.astype(np.float32),
        deviation=deviation.astype(np.float32),
        hidden=np.stack([one["hidden"] for one in networks]),
        bias=np.stack([one["bias"] for one in networks]),
        output=(np.stack([one["output"][:, 0] for one in networks]) / seeds).astype(np.float32),
        linear=np.mean([one["linear"][:, 0] for one in networks], axis=0),
    )


def _train_one(
    lists: Sequence[tuple[NDArray[np.float32], NDArray[np.float32], float]],
    *,
    hidden: int,
    epochs: int,
    decay: float,
    scale: float,
    random: np.random.Generator,
    batch: int = 64,
    rate: float = 4e-3,
) -> dict[str, NDArray[np.float32]]:
    """Adam with decoupled decay, its rate falling to nothing."""
    width = lists[0][0].shape[1]
    lengths = np.array([len(rows) for rows, _, _ in lists])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    rows = np.concatenate([rows for rows, _, _ in lists]).astype(np.float32)
    wanted = np.concatenate([relevant for _, relevant, _ in lists]).astype(np.float32)
    weights = np.array([weight * scale for *_, weight in lists], dtype=np.float32)
    parameters = {
        "hidden": random.normal(0, 1 / math.sqrt(width), (width, hidden)).astype(np.float32),
        "bias": np.zeros(hidden, np.float32),
        "output": random.normal(0, 0.1 / math.sqrt(hidden), (hidden, 1)).astype(np.float32),
        "linear": np.zeros((width, 1), np.float32),
    }
    first = {name: np.zeros_like(value) for name, value in parameters.items()}
    second = {name: np.zeros_like(value) for name, value in parameters.items()}
    steps = epochs * (len(lists) // batch)
    step = 0
    for _ in range(epochs):
        order = random.permutation(len(lists))
        for begin in range(0, len(order) - batch + 1, batch):
            chosen = order[begin : begin + batch]
            places = np.concatenate([np.arange(starts[n], starts[n] + lengths[n]) for n in chosen])
            counts = lengths[chosen]
            edges = np.concatenate([[0], np.cumsum(counts)[:-1]])
            inputs = rows[places]
            active = np.tanh(inputs @ parameters["hidden"] + parameters["bias"])
            scores = (active @ parameters["output"] + inputs @ parameters["linear"])[:, 0]
            scores = np.exp(scores - np.repeat(np.maximum.reduceat(scores, edges), counts))
            share = scores / np.repeat(np.add.reduceat(scores, edges), counts)
            error = ((share - wanted[places]) * np.repeat(weights[chosen], counts) / batch)[:, None]
            inner = error @ parameters["output"].T * (1 - active * active)
            slopes = {
                "output": active.T @ error,
                "linear": inputs.T @ error,
                "hidden": inputs.T @ inner,
                "bias": inner.sum(axis=0),
            }
            step += 1
            current = rate * max(0.02, 1 - step / (steps + 1))
            for name, slope in slopes.items():
                first[name] = 0.9 * first[name] + 0.1 * slope
                second[name] = 0.999 * second[name] + 0.001 * slope * slope
                change = first[name] / (1 - 0.9**step) / (np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8)
                parameters[name] -= (current * (change + decay * parameters[name])).astype(np.float32)
    return parameters


def write(network: Network) -> None:
    np.savez(CHECKOUT / "edgerag" / "ask" / WEIGHTS_FILE, names=np.array(NAMES), **dataclasses.asdict(network))
    shipped.cache_clear()


# ---------------------------------------------------------------- judging


def judge(sets: dict[tuple[str, Passages], list[Example]], network: Network, *, swap: bool) -> dict[str, Any]:
    """hit@1 and nDCG@10 by document: of each leg, fused, and reranked, on what was not trained on."""
    orders: dict[str, Callable[[Example], NDArray[np.float32]]] = {
        "keyword": lambda example: example.rows[:, NAMES.index("keyword_rank")],
        "vector": lambda example: example.rows[:, NAMES.index("vector_rank")],
        "fused": lambda example: -np.arange(len(example.rows), dtype=np.float32),
        "reranked": lambda example: network.scores(example.rows),
    }
    figures: dict[str, Any] = {}
    for (name, passages), examples in sets.items():
        if name == "scifact-train":
            continue
        once = [example for example in examples if not example.again]
        judged = [example for example in (once if name == "scifact" else once[0 if swap else 1 :: 2]) if example.wanted]
        row = {
            order: {
                "hit@1": round(float(np.mean([_hit(e, scores(e)) for e in judged])), 4),
                "ndcg@10": round(float(np.mean([_ndcg(e, scores(e)) for e in judged])), 4),
            }
            for order, scores in orders.items()
        }
        figures[f"{name} {passages}"] = row | {"questions": len(judged)}
        cells = "   ".join(f"{order} {one['hit@1']:.3f} / {one['ndcg@10']:.4f}" for order, one in row.items())
        print(f"{name:12} {passages:8} {len(judged):5}   {cells}", flush=True)
    return figures


def _documents(example: Example, scores: NDArray[np.float32]) -> list[bool]:
    """Whether each document is relevant, in the order of its best passage."""
    right = {document for document, relevant in zip(example.documents, example.relevant, strict=True) if relevant}
    order = np.argsort(-scores, kind="stable")
    return [document in right for document in dict.fromkeys(example.documents[order].tolist())]


def _hit(example: Example, scores: NDArray[np.float32]) -> bool:
    return any(_documents(example, scores)[:1])


def _ndcg(example: Example, scores: NDArray[np.float32]) -> float:
    ranked = _documents(example, scores)[:10]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, example.wanted)))
    return sum(1 / math.log2(place + 2) for place, right in enumerate(ranked) if right) / ideal


if __name__ == "__main__":
    main()
