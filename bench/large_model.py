"""A model of the 7B class in 8 GiB: loaded, asked, and refused or made smaller where it does not fit.

    python bench/large_model.py [--size 7b] [--folder FOLDER] [--json FILE]

Writes a model of random weights (random_model.py; 4.1 GB for 7b) into ``--folder``, removed at the end, and runs
`edgerag ask` with it as a user does, in memory control groups that count the page cache too: 8 GiB; less than the
model needs with its whole context; and half of its weights. What a random model says means nothing; how fast it says
it, and in how much memory, is that of a trained one. Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from memory_cgroup import Group, Unavailable, limited
from random_model import SHAPES, write_model
from record import CHECKOUT, record

from edgerag.config import load_settings
from edgerag.engine.fit import usable
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.llama import ContextSettings
from edgerag.engine.need import memory_need

QUESTION = "Which torque do the lid screws of the pump need?"
GIBIBYTE = 2**30
_ANSWER_TOKENS = 24
_PROGRAM_BYTES = 40_000_000  # Python and the embedder


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", default="7b", choices=tuple(SHAPES))
    parser.add_argument("--folder", type=Path, help="where the model is written (default: the system's for such)")
    parser.add_argument("--json", type=Path, help="where the result goes (default: bench/results)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edgerag-bench-", dir=arguments.folder) as folder:
        home = Path(folder)
        model = write_model(home, size=arguments.size)
        print(f"{model.name}: {model.stat().st_size / 1e9:.2f} GB")
        environ = _home(home, model)
        _edgerag(environ, "ingest", "--json", str(CHECKOUT / "examples" / "docs"))
        header = read_header(model)
        tokens = load_settings(home / "config.toml", os.environ, {}).generation.context_tokens
        need, with_half = _need(header, tokens), _need(header, tokens // 2)
        # Half way between what fits half of the context and what fits all of it.
        half = (need + with_half) // 2 + need - usable(need) + _PROGRAM_BYTES
        figures: dict[str, Any] = {
            "file_bytes": model.stat().st_size,
            "context_tokens": tokens,
            "computed_need_bytes": need,
        }
        try:
            for name, limit in (("8gib", 8 * GIBIBYTE), ("tight", half), ("too_small", header.size_bytes // 2)):
                with limited(limit) as group:
                    figures[name] = {"limit_bytes": limit, **_asked(group, environ)}
                print(f"{name}: {json.dumps(figures[name])}")
        except Unavailable as error:
            raise SystemExit(f"No memory control group can be made: {error}") from error
    print(record("large_model", figures, parameters={"size": arguments.size}, file=arguments.json))


def _home(home: Path, model: Path) -> dict[str, str]:
    """A home with the embedder of the checkout and this model for the answers, tuned for nothing."""
    (home / "models").mkdir()
    for file in (CHECKOUT / "models").iterdir():
        if file.name in ("manifest.toml", "state.json") or file.name.startswith("all-minilm"):
            (home / "models" / file.name).symlink_to(file)
    (home / "config.toml").write_text(
        f'[models]\nchat = "{model}"\n[generation]\nanswer_tokens = {_ANSWER_TOKENS}\n', encoding="utf-8"
    )
    return {**os.environ, "EDGERAG_HOME": str(home)}


def _need(header: Header, tokens: int) -> int:
    return memory_need(header, ContextSettings(context_tokens=tokens, batch_tokens=512, threads=1)).total_bytes


def _asked(group: Group, environ: dict[str, str]) -> dict[str, Any]:
    """What one question came to in that group."""
    with group.inherited():
        done = subprocess.Popen(
            [sys.executable, "-m", "edgerag", "ask", "--json", QUESTION],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    out, errors = done.communicate()
    figures: dict[str, Any] = {"exit_code": done.returncode, **group.usage()}
    if done.returncode < 0 or not out:
        return {**figures, "errors": errors.strip()}
    answer = json.loads(out)
    times = answer["timings_s"]
    figures |= {"stop_reason": answer["stop_reason"], "notes": answer["notes"], "tokens": answer["tokens"]}
    if "generate" in times:
        computed = answer["prefill"]["computed_tokens"]
        figures |= {
            "model_load_s": round(times["model_load"], 2),
            "prefill_tps": round(computed / answer["prefill"]["seconds"], 1),
            "decode_tps": round((answer["tokens"]["answer"] - 1) / times["generate"], 2),
        }
    return figures


def _edgerag(environ: dict[str, str], *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "edgerag", *arguments], env=environ, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
