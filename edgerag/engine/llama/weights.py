"""Weights of another type, by llama.cpp's own quantiser."""

from __future__ import annotations

import ctypes
from pathlib import Path

from edgerag.engine.llama.library import library
from edgerag.errors import ModelDamaged


def quantize(source: Path, target: Path, *, weight_type: str, threads: int, metadata: dict[str, str]) -> None:
    """Writes ``source`` with weights of another type, and with ``metadata`` (texts under 128 bytes), to
    ``target``. Raises ModelDamaged when llama.cpp refuses, be it for a full disk."""
    loaded = library()
    api = loaded.api
    parameters = api.llama_model_quantize_default_params()
    parameters.ftype = getattr(api, f"LLAMA_FTYPE_MOSTLY_{weight_type}")
    parameters.nthread = threads
    parameters.allow_requantize = True
    overrides = (api.llama_model_kv_override * (len(metadata) + 1))()  # ends with an empty key
    for override, (key, value) in zip(overrides, metadata.items(), strict=False):
        override.tag = api.LLAMA_KV_OVERRIDE_TYPE_STR
        override.key = key.encode()
        override.value.val_str = value.encode()[:127]
    parameters.kv_overrides = overrides
    loaded.mark()
    if api.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(parameters)) != 0:
        raise ModelDamaged(f"{source} cannot be requantised: {loaded.complaint() or 'llama.cpp gives no reason'}.")
