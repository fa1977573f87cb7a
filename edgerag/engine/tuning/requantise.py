"""A twin of a model file with weights of another type, made by llama.cpp's own quantiser.

It lies beside the model under a name that says what it is, and nothing is ever written over. It is made by a child
process, since the quantiser cannot be interrupted.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgerag.engine.files import printable, remove_partial, sha256_of, whole_file
from edgerag.engine.fit import FILE_BITS, usable
from edgerag.engine.gguf import Header, read_header
from edgerag.engine.tuning.budget import Budget
from edgerag.engine.tuning.child import run_child
from edgerag.engine.tuning.choice import requantised_name
from edgerag.engine.tuning.record import RequantisedFile
from edgerag.errors import ModelDamaged, ModelError, ModelTooLarge, StorageFull
from edgerag.machine.memory import available_bytes
from edgerag.types import ModelFile

_MADE_FROM = "edgerag.requantised_from"
_BITS = {**FILE_BITS, "F16": 16.1, "BF16": 16.1, "Q5_1": 6.1, "Q5_0": 5.6, "Q4_1": 5.1}
_LEFT_FREE_BYTES = 500_000_000  # on the disk, for everything else
# A slow core of today: 170 million weights a second were measured on a fast one.
_WEIGHTS_PER_S = 40e6
_SHARE_OF_TIME = 0.4  # of a search that nobody asked to requantise


def make_twin(model: ModelFile, header: Header, weight_type: str, *, threads: int, budget: Budget, asked: bool) -> Path:
    """The twin's file; made unless it is there already.

    Raises StorageFull, ModelTooLarge, ModelError when it would take too long and was not ``asked`` for or when a
    file of that name is another, ModelDamaged when llama.cpp refuses, and Stopped.
    """
    target = model.path.parent / requantised_name(model.path.stem, weight_type)
    if target.exists():
        if read_header(target).metadata.get(_MADE_FROM) == model.sha256:
            return target
        raise ModelError(
            f"{target} is in the way: it was not made from {model.path.name} as it is now.",
            remedy="Move it away and tune again.",
        )
    size_bytes = int(header.parameter_count * _BITS.get(weight_type, 8.5) / 8)
    seconds = header.parameter_count / (_WEIGHTS_PER_S * max(1, threads))
    if not asked and seconds > _SHARE_OF_TIME * budget.left():
        raise ModelError(
            f"Requantising to {weight_type} may take {seconds:,.0f} s.",
            remedy=f"Ask for it: edgerag models tune --requantise {weight_type}",
        )
    if size_bytes > usable(available_bytes()):
        raise ModelTooLarge(f"As {weight_type} it would need {size_bytes / 1e6:,.0f} MB of memory, which is not free.")
    free_bytes = shutil.disk_usage(target.parent).free
    if free_bytes < size_bytes + _LEFT_FREE_BYTES:
        raise StorageFull(
            f"As {weight_type} it would take {size_bytes / 1e6:,.0f} MB in {target.parent}, where "
            f"{free_bytes / 1e6:,.0f} MB are free; {_LEFT_FREE_BYTES / 1e6:,.0f} MB are left to others.",
            remedy="Make room and tune again.",
        )
    remove_partial(target.parent)
    with whole_file(target) as temporary:
        task = {
            "source": str(model.path),
            "target": str(temporary),
            "weight_type": weight_type,
            "threads": threads,
            "metadata": {"edgerag.weights_sha256": model.weights_sha256, _MADE_FROM: model.sha256},
        }
        try:
            run_child("requantise", task, budget=budget)
            made = read_header(temporary)  # whole, by its own account
        except ModelDamaged as error:
            if shutil.disk_usage(target.parent).free < size_bytes // 50:
                raise StorageFull(
                    f"The disk is full: {target} could not be written.", remedy="Make room and tune again."
                ) from error
            raise
        if made.architecture != header.architecture:
            raise ModelDamaged(f"llama.cpp made a {printable(made.architecture)} out of {model.path}.")
    return target


def describe_twin(model: ModelFile, name: str) -> RequantisedFile:
    """What is to be remembered of a twin. Raises ModelError when it cannot be read."""
    path = model.path.parent / name
    header, stat = read_header(path), path.stat()
    return RequantisedFile(
        name=name,
        size_bytes=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        sha256=sha256_of(path),
        weight_type=header.weight_type,
    )


def is_as_it_was(model: ModelFile, file: RequantisedFile) -> bool:
    try:
        stat = (model.path.parent / file.name).stat()
    except OSError:
        return False
    return (stat.st_size, stat.st_mtime_ns) == (file.size_bytes, file.mtime_ns)


def twin_model(model: ModelFile, name: str) -> ModelFile:
    """The model with the file ``name`` beside it in the place of its own; "" is its own. Its checksum is not taken."""
    if not name:
        return model
    path = model.path.parent / name
    return replace(model, path=path, size_bytes=path.stat().st_size, sha256="")


def remove_twin(model: ModelFile, name: str) -> None:
    """Removes a twin that nobody runs, if it is one of this model."""
    path = model.path.parent / name
    if path.exists() and read_header(path).metadata.get(_MADE_FROM) == model.sha256:
        path.unlink(missing_ok=True)


def work(task: dict[str, Any]) -> dict[str, Any]:
    """In the child process."""
    from edgerag.engine.llama import quantize

    quantize(
        Path(task["source"]),
        Path(task["target"]),
        weight_type=task["weight_type"],
        threads=task["threads"],
        metadata=task["metadata"],
    )
    return {}
