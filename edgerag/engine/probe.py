"""A model file that was never loaded before is loaded by a child process first.

llama.cpp ends the process on some damaged files, and a library built for another processor dies of
SIGILL. Then only the child dies, and its death becomes a sentence.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

from edgerag import errors
from edgerag.engine.files import printable
from edgerag.errors import EngineUnavailable, ModelDamaged, ModelError, ModelTooLarge
from edgerag.machine.cpu import read_processor
from edgerag.machine.stacks import small_stacks
from edgerag.machine.trial import foreign_build, tried
from edgerag.types import Message, ModelFile, ModelKind, Sampling

_LEAST_DEADLINE_S = 120.0
_SLOWEST_BYTES_PER_S = 10_000_000  # an SD card
_CHECKING_STACK_BYTES = 256 << 10  # of threads that compare numbers, one for each tensor at once
_MARK = "edgerag-probe:"
_CHILD = "from edgerag.engine.probe import child; child(sys.argv[2:])"
PORTABLE_ENGINE = "Build the portable one: make prepare, or take it from a bundle."

# Every beginning of a conversation that the program sends.
_CONVERSATIONS = (("user",), ("system", "user"), ("system", "user", "assistant", "user"))


def engine_fingerprint() -> str:
    """Changes when the engine or the processor does: then a file is tried again."""
    spec = importlib.util.find_spec("llama_cpp")
    parts = [*read_processor().features]
    if spec is not None and spec.origin:
        for library in sorted((Path(spec.origin).parent / "lib").glob("*llama*")):
            stat = library.stat()
            parts.append(f"{library.name} {stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def probe(model: ModelFile) -> None:
    """Loads ``model`` in a child process and lets it work a little. Raises what is wrong with it."""
    deadline_s = _LEAST_DEADLINE_S + model.size_bytes / _SLOWEST_BYTES_PER_S
    arguments = (model.kind, str(model.path.resolve()), str(model.context_tokens), str(model.dimension))
    try:
        done = tried(_CHILD, *arguments, deadline_s=deadline_s)
    except subprocess.TimeoutExpired as error:
        raise ModelError(
            f"{model.path} did not load within {deadline_s:.0f} s.", remedy="Try a smaller model, or a faster disk."
        ) from error
    answer = next(
        (line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.startswith(_MARK)), None
    )
    if done.returncode == 0 and answer is not None:
        result = json.loads(answer.removeprefix(_MARK))
        if result["error"]:
            raise getattr(errors, result["error"])(result["message"], remedy=result["remedy"])
        return
    raise _death(model.path, done.returncode, done.stderr.decode("utf-8", "replace"))


def _death(path: Path, code: int, stderr: str) -> ModelError:
    last = next((line.strip() for line in reversed(stderr.splitlines()) if line.strip()), "")
    if foreign := foreign_build("llama.cpp", code):
        return EngineUnavailable(foreign, remedy=PORTABLE_ENGINE)
    if code == -signal.SIGKILL:
        return ModelTooLarge(f"Loading {path} was killed by the system, most likely for want of memory.")
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return ModelDamaged(
        f"llama.cpp crashed ({how}) on {path}{': ' + printable(last[-300:]) if last else ''}.",
        remedy="The file is damaged, or made for another version of llama.cpp.",
    )


def child(arguments: list[str]) -> None:
    """What the child process does."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind, path, context_tokens, dimension = arguments
    model = ModelFile(
        name=Path(path).name,
        kind=next(known for known in get_args(ModelKind) if known == kind),
        path=Path(path),
        size_bytes=Path(path).stat().st_size,
        sha256="",
        weights_sha256="",
        licence="",
        languages=(),
        context_tokens=int(context_tokens),
        dimension=int(dimension),
    )
    result = {"error": "", "message": "", "remedy": ""}
    try:
        _work(model)
    except ModelError as error:
        result = {"error": type(error).__name__, "message": error.message, "remedy": error.remedy}
    sys.stdout.write(f"\n{_MARK}{json.dumps(result)}\n")


def _work(model: ModelFile) -> None:
    from edgerag.engine.llama import Model

    with small_stacks(_CHECKING_STACK_BYTES):
        Model(model.path, check_tensors=True).close()
    if model.kind == "embedder":
        from edgerag.engine.embedder import open_embedder

        embedder = open_embedder(replace(model, context_tokens=min(model.context_tokens or 64, 64)), threads=1)
        embedder.embed_query("probe")
        return
    if model.kind == "reranker":
        from edgerag.engine.reranker import open_reranker

        open_reranker(replace(model, context_tokens=min(model.context_tokens or 64, 256)), threads=1).log_odds("a", "b")
        return
    from edgerag.engine.generator import open_generator, plain_settings

    generator = open_generator(model, plain_settings(context_tokens=512, threads=1))
    for roles in _CONVERSATIONS:
        tokens = generator.encode_chat([Message(role=role, parts=("a",)) for role in roles]).tokens  # type: ignore[arg-type]
    sampling = Sampling(temperature=0, top_p=1, repeat_penalty=1.1, seed=0)
    for _ in generator.generate(tokens[:128], max_tokens=2, sampling=sampling, cancelled=lambda: False):
        pass
