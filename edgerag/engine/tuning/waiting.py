"""How threads wait for each other: asleep, or spinning for a moment first.

Spinning saves waking up, hundreds of times per token; but where another program has one of the cores, the others spin
for nothing while that one waits for its turn (docs/decisions/022). OpenMP reads the wish once per process, so each
is measured in a process of its own: alone, and with a busy neighbour, for which a machine at work is never too good.
The prompt is a short one: waiting costs the same for a large batch, where nobody would see it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgerag.engine.tuning.apply import Processors, context_settings, pinned_cpus
from edgerag.engine.tuning.budget import Budget
from edgerag.engine.tuning.child import run_child
from edgerag.engine.tuning.choice import Choice, wait_environment
from edgerag.engine.tuning.paired import Round, Speed
from edgerag.types import ModelFile

_CONTEXT_TOKENS = 256
# Tokens: what is left of a prompt whose passages were restored, behind some that the cache holds.
_PROMPT, _HELD = 40, 64
_PROMPTS = 3
_LONGEST_PROMPTS_S = 1.5
_LONGEST_S = 1.0  # spinning beside a busy neighbour may take a second per token
# A program of the user's: it ends by itself, should nobody be left to end it.
_NEIGHBOUR = "import time\nend = time.monotonic() + 10\nwhile time.monotonic() < end: pass"
# Somebody who waits for an answer has the machine to himself three times out of four.
_ALONE_SHARE = 0.75


def rounds(
    model: ModelFile, cpus: Processors, standing: Choice, candidate: Choice, *, answer_tokens: int, budget: Budget
) -> Iterator[Round]:
    """Short prompts and decoding, alone and beside a neighbour, as a geometric mean: what wins by a quarter and loses
    by ten times is not taken."""
    while True:
        found = {}
        for choice in (standing, candidate):
            budget.check()
            path = model.path.parent / choice.weights if choice.weights else model.path
            task = {
                "path": str(path),
                "choice": asdict(choice),
                "pools": pinned_cpus(choice, cpus),
                "tokens": answer_tokens,
            }
            environment = {"OMP_WAIT_POLICY": "passive", **wait_environment(choice.wait_policy)}
            found[choice] = run_child("waiting", task, budget=budget, environment=environment)
        yield Round(_mean(found[standing]), _mean(found[candidate]))


def _mean(speeds: dict[str, Any]) -> Speed:
    """Of the speeds of prompt and answer that the child measured."""
    pairs = zip(speeds["quiet"], speeds["busy"], strict=True)
    return Speed(*(quiet**_ALONE_SHARE * busy ** (1 - _ALONE_SHARE) for quiet, busy in pairs))


def work(task: dict[str, Any]) -> dict[str, Any]:
    """In the child process: tokens per second of prompt and answer, alone and beside a busy neighbour."""
    from edgerag.engine.llama import Context, Model
    from edgerag.engine.llama.threads import make_pool

    choice, count = Choice(**task["choice"]), int(task["tokens"])
    model = Model(Path(task["path"]), load_mode=choice.load_mode, repack=choice.repack)
    decode, prefill = (make_pool(cpus) for cpus in task["pools"])
    pools = (decode, prefill) if decode is not None and prefill is not None else None
    context = Context(model, context_settings(choice, context_tokens=_CONTEXT_TOKENS), pools=pools)
    tokens = model.tokenize("The weather was fine. " * 24)

    def speed() -> tuple[float, float]:
        context.clear()
        context.decode(tokens[:_HELD], position=0)
        began = time.perf_counter()
        computed = 0
        while computed < _PROMPTS * _PROMPT:
            context.trim(_HELD)
            context.decode(tokens[_HELD : _HELD + _PROMPT], position=_HELD)
            computed += _PROMPT
            if (prompt_s := time.perf_counter() - began) > _LONGEST_PROMPTS_S:
                break
        began = time.perf_counter()
        for done in range(1, count + 1):
            context.decode([tokens[done % len(tokens)]], position=_HELD + _PROMPT + done - 1)
            if (seconds := time.perf_counter() - began) > _LONGEST_S:
                break
        return computed / prompt_s, done / seconds

    warm = speed()
    if warm[1] < 1 / _LONGEST_S:  # hardly a token: there are neighbours already, and more of it would tell no more
        return {"quiet": warm, "busy": warm}
    quiet = speed()
    neighbour = subprocess.Popen([sys.executable, "-S", "-c", _NEIGHBOUR], stdin=subprocess.DEVNULL, env=os.environ)  # noqa: S603
    try:
        time.sleep(0.1)  # until it has begun
        busy = speed()
    finally:
        neighbour.kill()
        neighbour.wait()
    context.close()
    for pool in pools or ():
        pool.close()
    model.close()
    return {"quiet": quiet, "busy": busy}
