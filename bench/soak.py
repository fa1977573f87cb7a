"""Days of use in minutes, in one process: does memory, open files, threads or latency grow?

    python bench/soak.py [--minutes 12] [--real-every 8] [--seed 1] [--json FILE]

One process keeps two sessions open: one with embeddings by words and a generator by script (tests/fakes.py), for
thousands of asks and ingests, and one with the real small models, asked every few cycles with short answers. A cycle:
some files of a folder change, one comes, one goes; the folder is ingested; questions are asked and kept in a
conversation, others searched, with filters; old conversations are deleted; now and then the library is compacted,
verified, backed up and imported again. The amount of what is kept stays the same, so nothing else may grow.

After each cycle: resident memory, open files, threads, bytes of the home, and per kind of work the median of wall and
of processor time. What is judged is the line through the samples after the warm-up (slopes.py): a series grows when
even the lower end of its 95 % interval does, by more than the share below. Wall time depends on who else uses the
machine: it is shown, and processor time is judged.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from record import CHECKOUT, record
from slopes import growth

sys.path.append(str(CHECKOUT / "tests"))
from fakes import HashingEmbedder, ScriptedGenerator  # type: ignore[import-not-found]

from edgerag.config import GenerationSettings, IngestSettings, Settings, TraceSettings
from edgerag.locations import Locations
from edgerag.machine.memory import resident_bytes
from edgerag.session import Session
from edgerag.types import AnswerDone, Filter, IngestDone

_FILES, _CHANGED, _ASKS, _SEARCHES = 40, 6, 12, 12
_THREADS_KEPT = 20
_WARM_UP = 0.25  # of the cycles: caches fill, allocators settle
_REAL_QUESTIONS = (
    "Which torque do the lid screws of the pump need?",
    "How often is the diaphragm replaced?",
    "What may the pump not be used for?",
)
# What a series may grow by over the whole run, as a share of its median, before it is said to grow.
_MAY_GROW = {"rss_bytes": 0.03, "open_files": 0.0, "threads": 0.0, "home_bytes": 0.10}
_TIME_MAY_GROW = 0.15


@dataclass(slots=True)
class Samples:
    """One value per cycle and name."""

    series: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _times: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self._times[what].append((time.perf_counter() - wall, time.process_time() - cpu))
        self.counts[what] += 1

    def take(self, home: Path) -> None:
        """At the end of a cycle."""
        self.series["rss_bytes"].append(resident_bytes())
        self.series["open_files"].append(len(list(Path("/proc/self/fd").iterdir())))
        self.series["threads"].append(len(list(Path("/proc/self/task").iterdir())))
        self.series["home_bytes"].append(sum(path.stat().st_size for path in home.rglob("*") if path.is_file()))
        for what, times in self._times.items():
            if times:
                self.series[f"{what}_wall_ms"].append(1000 * sorted(wall for wall, _ in times)[len(times) // 2])
                self.series[f"{what}_cpu_ms"].append(1000 * sorted(cpu for _, cpu in times)[len(times) // 2])
        self._times.clear()


class Soak:
    def __init__(self, scratch: Path, models: Path, seed: int) -> None:
        self.pick = random.Random(seed)
        self.scratch, self.docs = scratch, scratch / "docs"
        self.docs.mkdir()
        self.home = scratch / "home"
        self.home.mkdir()
        (self.home / "models").symlink_to(models)
        self.samples = Samples()
        self.embedder, self.generator = HashingEmbedder(), ScriptedGenerator("The pressure is as written [1]. " * 8)
        ingest = IngestSettings(nice=0)
        fake = Settings(ingest=ingest, trace=TraceSettings(keep=50))
        real = Settings(
            ingest=ingest,
            trace=TraceSettings(keep=50),
            # Small enough to be full after the warm-up.
            generation=GenerationSettings(answer_tokens=12, kv_memory=16_000_000, kv_disk=32_000_000),
        )
        self.fake = Session(
            fake, Locations(self.home), embedder=lambda: self.embedder, generator=lambda: self.generator
        )
        self.real = Session(_named(real, "real"), Locations(self.home))
        self.words = [
            f"{a}{b}" for a in ("val", "pum", "sen", "bol", "ket", "rin") for b in ("ve", "pa", "sor", "ta", "lu")
        ]
        self.next_file = 0
        for _ in range(_FILES):
            self.new_file()
        self.real_docs = scratch / "real-docs"
        shutil.copytree(CHECKOUT / "examples" / "docs", self.real_docs)

    def new_file(self) -> None:
        self.next_file += 1
        self.write(self.docs / f"file-{self.next_file:05}.md")

    def write(self, path: Path) -> None:
        paragraphs = [
            " ".join(self.pick.choice(self.words) for _ in range(60)).capitalize() + f" {self.pick.randrange(1000)}."
            for _ in range(8)
        ]
        path.write_text(f"# {path.stem}\n\n" + "\n\n".join(paragraphs) + "\n", encoding="utf-8")

    def cycle(self, number: int, *, real: bool) -> None:
        files = sorted(self.docs.iterdir())
        for path in self.pick.sample(files, _CHANGED):
            self.write(path)
        self.pick.choice(files).unlink()
        self.new_file()
        with self.samples.timed("ingest"):
            *_, done = self.fake.ingest([self.docs], tags=["soak"])
        assert isinstance(done, IngestDone) and not done.interrupted
        assert all(each.outcome != "failed" for each in done.reports)
        self.ask()
        for _ in range(_SEARCHES):
            query = " ".join(self.pick.sample(self.words, 2))
            where = Filter(tags=("soak",)) if self.pick.random() < 0.5 else None
            with self.samples.timed("search"):
                assert self.fake.search(query, limit=5, where=where).hits
        if number % 5 == 0:
            with self.samples.timed("compact"):
                self.fake.compact_library(progress=lambda _: None)
        if number % 7 == 0:
            self.travel()
        if real:
            self.ask_really(number)
        self.embedder.embedded.clear()  # what the stand-ins remember is no memory of the program
        for kept in (self.generator.prompts, self.generator.messages, self.generator.max_tokens_asked):
            kept.clear()
        self.samples.take(self.home)

    def ask(self) -> None:
        threads, last = self.fake.threads, None
        for _ in range(_ASKS):
            question = f"What is the {self.pick.choice(self.words)} of the {self.pick.choice(self.words)}?"
            history = threads.history(None if last is None else last.id)
            with self.samples.timed("ask"):
                exchange = threads.ask(
                    question,
                    library="default",
                    thread_id=None if last is None else last.thread_id,
                    parent_id=None if last is None else last.id,
                )
                *_, done = self.fake.ask(question, history=history)
                assert isinstance(done, AnswerDone)
                threads.finish(exchange.id, done.answer)
            last = exchange
        heads = threads.heads(library=None)
        threads.delete([head.id for head in heads[_THREADS_KEPT:]])

    def travel(self) -> None:
        package = self.scratch / "backup.edgerag"
        with self.samples.timed("backup"):
            self.fake.export_library("default", package, progress=lambda _done, _total: None)
        self.fake.import_library(package, "back", progress=lambda _done, _total: None)
        shutil.rmtree(self.home / "indexes" / "back")
        package.unlink()
        with self.samples.timed("verify"):
            assert {finding.severity for finding in self.fake.verify_library()} == {"ok"}

    def ask_really(self, number: int) -> None:
        (self.real_docs / "changing.md").write_text(f"# Changes\n\nThe valve number {number} was changed.\n")
        with self.samples.timed("real_ingest"):
            *_, _done = self.real.ingest([self.real_docs])
        with self.samples.timed("real_search"):
            assert self.real.search(self.pick.choice(_REAL_QUESTIONS), limit=5).hits
        with self.samples.timed("real_ask"):
            *_, done = self.real.ask(self.pick.choice(_REAL_QUESTIONS))
        assert isinstance(done, AnswerDone) and done.answer.found

    def close(self) -> None:
        self.fake.close()
        self.real.close()


def _named(settings: Settings, name: str) -> Settings:
    from dataclasses import replace

    return replace(settings, library=replace(settings.library, name=name))


def judged(samples: Samples) -> tuple[dict[str, Any], list[str]]:
    """(figures of each series, names of those that grow)"""
    figures: dict[str, Any] = {}
    grows = []
    for name, values in sorted(samples.series.items()):
        kept = values[int(len(values) * _WARM_UP) :]
        if len(kept) < 8:
            continue
        line = growth(kept)
        limit = _MAY_GROW.get(name, _TIME_MAY_GROW if name.endswith("_cpu_ms") else None)
        figures[name] = {
            "samples": len(kept),
            "first": round(kept[0], 2),
            "median": round(line.median, 2),
            "last": round(kept[-1], 2),
            "growth": round(line.growth, 3),
            "growth_low": round(line.low, 3),
            "growth_high": round(line.high, 3),
            "growth_share": round(line.share, 4),
            "may_grow_share": limit,
        }
        if limit is not None and line.low_share > limit:
            grows.append(name)
    return figures, grows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--real-every", type=int, default=8, help="cycles between two rounds with the real models")
    parser.add_argument("--models", type=Path, default=CHECKOUT / "models")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), arguments.models.resolve(), arguments.seed)
        number = 0
        try:
            while time.monotonic() - began < 60 * arguments.minutes:
                number += 1
                soak.cycle(number, real=number % arguments.real_every == 1)
                if number % 10 == 0:
                    last = {
                        name: round(values[-1]) for name, values in soak.samples.series.items() if "_ms" not in name
                    }
                    print(number, round(time.monotonic() - began), last, flush=True)
        finally:
            soak.close()
        figures, grows = judged(soak.samples)
    result = {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "cycles": number,
        "done": dict(soak.samples.counts),
        "grows": grows,
        "series": figures,
    }
    print(json.dumps(result, indent=2))
    parameters = {"seed": arguments.seed, "real_every": arguments.real_every, "warm_up": _WARM_UP}
    print(record("soak", result, parameters=parameters, file=arguments.json))
    sys.exit(bool(grows))


if __name__ == "__main__":
    main()
