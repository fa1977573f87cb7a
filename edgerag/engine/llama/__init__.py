"""The only importer of llama_cpp (but for the peer in measure/): thin, typed classes over llama.cpp's C interface.

Nothing else in the program sees a pointer. Handles are closed explicitly; using a closed one raises ValueError.
"""

from edgerag.engine.llama.context import Context, ContextSettings, Run
from edgerag.engine.llama.library import describe_engine
from edgerag.engine.llama.model import LoadMode, Model
from edgerag.engine.llama.sampler import Sampler
from edgerag.engine.llama.threads import ThreadPool
from edgerag.engine.llama.weights import quantize

__all__ = [
    "Context",
    "ContextSettings",
    "LoadMode",
    "Model",
    "Run",
    "Sampler",
    "ThreadPool",
    "describe_engine",
    "quantize",
]
