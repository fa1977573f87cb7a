"""The only importer of llama_cpp: thin, typed classes over llama.cpp's C interface.

Nothing else in the program sees a pointer. The library is loaded on first use, its backends once
per process, and its log is kept in memory: the last error lines go into our own messages, nothing
reaches the terminal. Handles are closed explicitly; using a closed one raises ValueError.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from edgerag.engine.files import printable
from edgerag.errors import EngineUnavailable, ModelDamaged, ModelError

if TYPE_CHECKING:
    from edgerag.types import Vectors

TokenKind = Literal["normal", "control", "user_defined", "byte", "unknown", "unused"]

_ERROR_LEVEL, _CONTINUES = 4, 5  # of ggml_log_level; 5 goes on with the line before
_REINSTALL = "Install it again: make prepare (portable build), or pip install --force-reinstall llama-cpp-python"


class _Library:
    """llama.cpp, loaded with its backends and silenced."""

    def __init__(self) -> None:
        # Threads that wait for each other sleep instead of spinning: on cores that other programs use
        # too, that decodes up to 25 times faster (docs/decisions/022). Read when OpenMP is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            import llama_cpp.llama_cpp as api
        except ImportError as error:
            raise EngineUnavailable(f"llama-cpp-python is not usable: {error}.", remedy=_REINSTALL) from error
        except (OSError, RuntimeError, AttributeError) as error:
            # What its loader raises for a library that is missing, broken, or of another version.
            raise EngineUnavailable(f"The llama.cpp library cannot be loaded: {error}", remedy=_REINSTALL) from error
        self.api: Any = api
        self._lines: deque[tuple[int, int, str]] = deque(maxlen=200)
        self._callback = api.llama_log_callback(self._log)  # kept: C holds a pointer to it
        api.llama_log_set(self._callback, None)
        # Symbols of ggml are looked up through libllama's own handle: that is the instance libllama
        # itself uses, whichever copies of libggml lie beside it (MEASURED.md).
        ggml = api._lib
        count = ggml.ggml_backend_reg_count
        count.restype = ctypes.c_size_t
        if count() == 0:
            load_all = ggml.ggml_backend_load_all_from_path
            load_all.argtypes, load_all.restype = [ctypes.c_char_p], None
            for folder in _backend_folders(Path(api.__file__).parent):
                load_all(str(folder).encode())
                if count():
                    break
        if count() == 0:
            raise EngineUnavailable("llama.cpp has no backend that runs on this processor.", remedy=_REINSTALL)
        api.llama_backend_init()

    def _log(self, level: int, text: bytes, _: object) -> None:
        thread = threading.get_ident()
        line = text.decode("utf-8", "replace")
        if level == _CONTINUES and self._lines and self._lines[-1][0] == thread:
            _, level, before = self._lines.pop()
            line = before + line
        self._lines.append((thread, level, line))

    def mark(self) -> None:
        """Forgets what this thread logged so far."""
        kept = [entry for entry in list(self._lines) if entry[0] != threading.get_ident()]
        self._lines.clear()
        self._lines.extend(kept)

    def complaint(self) -> str:
        """The last error lines that this thread caused, or ""."""
        thread = threading.get_ident()
        lines = [t.strip() for who, level, t in list(self._lines) if who == thread and level == _ERROR_LEVEL]
        return printable("; ".join(dict.fromkeys(line for line in lines if line))[-400:])


def _backend_folders(package: Path) -> list[Path]:
    """Where a build with loadable backends may have put them; the first that exists comes first."""
    candidates = (package.parent / "bin", package / "lib", package / "bin")
    return [folder for folder in candidates if any(folder.glob("*ggml-cpu*"))]


_loading = threading.Lock()
_loaded: list[_Library] = []  # at most one; a failure is not remembered


def _library() -> _Library:
    with _loading:
        if not _loaded:
            _loaded.append(_Library())
        return _loaded[0]


def describe_engine() -> str:
    """One line about the engine: version and what it uses of the processor. Raises EngineUnavailable."""
    library = _library()
    from llama_cpp import __version__

    facts = [part.partition("=") for part in _text(library.api.llama_print_system_info()).split("|")]
    features = [name.split(":")[-1].strip() for name, _, value in facts if value.strip() not in ("", "0")]
    return f"llama-cpp-python {__version__}: {', '.join(features) or 'no processor features'}"


def quantize(source: Path, target: Path, *, weight_type: str, threads: int, metadata: dict[str, str]) -> None:
    """Writes ``source`` with weights of another type, and with ``metadata`` (texts under 128 bytes), to
    ``target``. Raises ModelDamaged when llama.cpp refuses, be it for a full disk."""
    library = _library()
    api = library.api
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
    library.mark()
    if api.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(parameters)) != 0:
        raise ModelDamaged(f"{source} cannot be requantised: {library.complaint() or 'llama.cpp gives no reason'}.")


class Model:
    """The weights and vocabulary of one GGUF file."""

    def __init__(self, path: Path, *, check_tensors: bool = False, vocabulary_only: bool = False) -> None:
        self._library = _library()
        self._api = self._library.api
        parameters = self._api.llama_model_default_params()
        parameters.n_gpu_layers = 0
        parameters.check_tensors = check_tensors
        parameters.vocab_only = vocabulary_only
        self._library.mark()
        self._handle: int | None = self._api.llama_model_load_from_file(str(path).encode(), parameters)
        if not self._handle:
            raise ModelDamaged(
                f"llama.cpp cannot load {path}: {self._library.complaint() or 'it gives no reason'}.",
                remedy="The file may be damaged, or of a kind that this version of llama.cpp does not know.",
            )
        self._vocabulary = self._api.llama_model_get_vocab(self._handle)
        self.path = path
        self.vocabulary_size = int(self._api.llama_vocab_n_tokens(self._vocabulary))
        self.dimension = int(self._api.llama_model_n_embd_out(self._handle))
        self.has_decoder = bool(self._api.llama_model_has_decoder(self._handle))
        self.adds_bos = bool(self._api.llama_vocab_get_add_bos(self._vocabulary))
        self.bos = int(self._api.llama_vocab_bos(self._vocabulary))  # -1: has none
        self.eos = int(self._api.llama_vocab_eos(self._vocabulary))

    @property
    def handle(self) -> int:
        if self._handle is None:
            raise ValueError("the model is closed")
        return self._handle

    def close(self) -> None:
        """Frees the weights; contexts first."""
        if self._handle is not None:
            self._api.llama_model_free(self._handle)
            self._handle = None

    def tokenize(self, text: str, *, special: bool = False, add_ends: bool = False) -> list[int]:
        """Tokens of ``text``. ``special``: names of control tokens in it become those tokens.
        ``add_ends``: with what the model wants before and after (BOS; [CLS] and [SEP])."""
        data = _utf8(text)
        room = 2 * len(data) + 8  # no tokenizer makes more tokens than bytes, specials apart
        buffer = (ctypes.c_int32 * room)()
        count = self._tokenize(data, buffer, room, add_ends, special)
        if count < 0:
            raise ModelError(f"{self.path} makes {-count} tokens of {len(data)} bytes of text.")
        return buffer[:count]

    def count_tokens(self, text: str) -> int:
        """How many tokens ``tokenize(text)`` gives, without making the list."""
        return abs(self._tokenize(_utf8(text), None, 0, False, False))

    def _tokenize(self, data: bytes, buffer: Any, room: int, add_ends: bool, special: bool) -> int:
        _ = self.handle  # refuses when closed
        return int(self._api.llama_tokenize(self._vocabulary, data, len(data), buffer, room, add_ends, special))

    def piece(self, token: int, *, special: bool = False) -> bytes:
        """The bytes that ``token`` stands for; control tokens are empty unless ``special``."""
        _ = self.handle
        for room in (64, 65536):  # nearly all are short
            buffer = ctypes.create_string_buffer(room)
            count = self._api.llama_token_to_piece(self._vocabulary, token, buffer, room, 0, special)
            if count >= 0:
                return buffer.raw[:count]
        raise ModelDamaged(f"Token {token} of {self.path} is longer than 64 KiB.")

    def vocabulary(self) -> list[str]:
        """The text of every token as it stands in the file, by number."""
        _ = self.handle
        text_of = self._api.llama_vocab_get_text
        return [_text(text_of(self._vocabulary, token)) for token in range(self.vocabulary_size)]

    def token_kind(self, token: int) -> TokenKind:
        attributes = int(self._api.llama_vocab_get_attr(self._vocabulary, token))
        api = self._api
        if attributes & api.LLAMA_TOKEN_ATTR_CONTROL or self.is_end(token):
            return "control"
        if attributes & api.LLAMA_TOKEN_ATTR_USER_DEFINED:
            return "user_defined"
        if attributes & api.LLAMA_TOKEN_ATTR_UNKNOWN:
            return "unknown"
        if attributes & api.LLAMA_TOKEN_ATTR_BYTE:
            return "byte"
        return "unused" if attributes & api.LLAMA_TOKEN_ATTR_UNUSED else "normal"

    def is_end(self, token: int) -> bool:
        """True for tokens that end the generation (EOS, end of turn, ...)."""
        return bool(self._api.llama_vocab_is_eog(self._vocabulary, token))


class Context:
    """The working memory of one model: its KV cache and compute buffers. Not thread safe."""

    def __init__(
        self,
        model: Model,
        *,
        context_tokens: int,
        batch_tokens: int,
        threads: int,
        embeddings: bool = False,
        sequences: int = 1,
        flash_attention: bool = True,
    ) -> None:
        self._model = model
        self._api = model._api
        parameters = self._api.llama_context_default_params()
        parameters.n_ctx = context_tokens
        parameters.n_batch = parameters.n_ubatch = batch_tokens
        parameters.n_seq_max = sequences
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.embeddings = embeddings
        parameters.no_perf = True
        parameters.swa_full = True  # a sliding-window cache that forgot could not be trimmed and re-used
        parameters.flash_attn_type = (
            self._api.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash_attention else self._api.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        model._library.mark()
        self._handle: int | None = self._api.llama_init_from_model(model.handle, parameters)
        if not self._handle:
            raise ModelError(
                f"llama.cpp cannot make a context of {context_tokens} tokens for {model.path}: "
                f"{model._library.complaint() or 'it gives no reason'}.",
                remedy="Ask for a smaller context (generation.context_tokens).",
            )
        self._memory = self._api.llama_get_memory(self._handle)
        self._batch = self._api.llama_batch_init(batch_tokens, 0, 1)
        self.batch_tokens = batch_tokens
        self.context_tokens = int(self._api.llama_n_ctx(self._handle))
        self._abort_flag = ctypes.create_string_buffer(2)  # a character and the terminator: see abortable

    @property
    def handle(self) -> int:
        if self._handle is None:
            raise ValueError("the context is closed")
        return self._handle

    def close(self) -> None:
        if self._handle is not None:
            self._api.llama_batch_free(self._batch)
            self._api.llama_free(self._handle)
            self._handle = None

    # ------------------------------------------------------------ generating

    def decode(self, tokens: Sequence[int], *, position: int, sequence: int = 0) -> bool:
        """Puts ``tokens`` (at most ``batch_tokens``) into the cache behind ``position`` and computes
        the logits of the last. False when it was aborted; the cache is then as :meth:`held` says."""
        self._fill(tokens, position=position, sequence=sequence, outputs_all=False)
        code = int(self._api.llama_decode(self.handle, self._batch))
        if code == 2:
            return False
        if code != 0:
            raise ModelError(
                f"llama.cpp failed to decode {len(tokens)} tokens at {position} with {self._model.path} "
                f"(code {code}): {self._model._library.complaint() or 'it gives no reason'}."
            )
        return True

    def held(self, sequence: int = 0) -> int:
        """How many tokens of ``sequence`` the cache holds."""
        return int(self._api.llama_memory_seq_pos_max(self._memory, sequence)) + 1

    def trim(self, position: int, sequence: int = 0) -> bool:
        """Forgets everything from ``position`` on. False if this model's cache cannot forget a part."""
        return bool(self._api.llama_memory_seq_rm(self._memory, sequence, position, -1))

    def clear(self) -> None:
        """Forgets everything."""
        self._api.llama_memory_clear(self._memory, True)

    @contextlib.contextmanager
    def abortable(self) -> Iterator[None]:
        """While open, :meth:`abort` (from any thread) makes a running ``decode`` return False.

        llama.cpp asks a callback between two operations of its graph, a thousand times per batch. A
        Python callback would wait for the interpreter lock each time, so C's own ``strlen`` is given
        instead: it is "true" as soon as the flag's first character is set.
        """
        self._abort_flag[0] = b"\0"
        callback = ctypes.cast(ctypes.CDLL(None).strlen, type(self._api.llama_context_default_params().abort_callback))
        self._api.llama_set_abort_callback(self.handle, callback, ctypes.addressof(self._abort_flag))
        try:
            yield
        finally:
            self._api.llama_set_abort_callback(self.handle, type(callback)(), None)

    def abort(self) -> None:
        self._abort_flag[0] = b"\1"

    # ------------------------------------------------------------ embedding

    def embed(self, tokens: Sequence[int]) -> Vectors:
        """The pooled vector of one text, as the model gives it (not of unit length)."""
        self._fill(tokens, position=0, sequence=0, outputs_all=True)
        run = self._api.llama_decode if self._memory else self._api.llama_encode
        if self._memory:
            self.clear()
        if run(self.handle, self._batch) != 0:
            raise ModelError(
                f"llama.cpp failed to embed {len(tokens)} tokens with {self._model.path}: "
                f"{self._model._library.complaint() or 'it gives no reason'}."
            )
        pointer = self._api.llama_get_embeddings_seq(self.handle, 0)
        if not pointer:
            raise ModelError(f"{self._model.path} gives no pooled vector; it is not an embedder.")
        return np.ctypeslib.as_array(pointer, (self._model.dimension,)).astype(np.float32, copy=True)

    def _fill(self, tokens: Sequence[int], *, position: int, sequence: int, outputs_all: bool) -> None:
        count = len(tokens)
        if not 0 < count <= self.batch_tokens:
            raise ValueError(f"{count} tokens in one batch of at most {self.batch_tokens}")
        _ = self.handle
        batch = self._batch
        batch.n_tokens = count
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = position + index
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = sequence
            batch.logits[index] = outputs_all
        batch.logits[count - 1] = True


class Sampler:
    """Chooses the next token. ``temperature`` 0 takes the likeliest; ``repeat_penalty`` 1 is none."""

    def __init__(
        self, model: Model, *, temperature: float, top_p: float, repeat_penalty: float, penalty_tokens: int, seed: int
    ) -> None:
        api = self._api = model._api
        self._handle: int | None = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params())
        steps = []
        if repeat_penalty != 1:
            steps.append(
                api.llama_sampler_init_penalties(model.vocabulary_size, penalty_tokens, repeat_penalty, 0.0, 0.0)
            )
        if temperature > 0:
            steps += [
                api.llama_sampler_init_top_p(top_p, 1),
                api.llama_sampler_init_temp(temperature),
                api.llama_sampler_init_dist(seed),
            ]
        else:
            steps.append(api.llama_sampler_init_greedy())
        for step in steps:
            api.llama_sampler_chain_add(self._handle, step)

    def sample(self, context: Context) -> int:
        """The token after the last one decoded; it counts as said for the repeat penalty."""
        return int(self._api.llama_sampler_sample(self._handle, context.handle, -1))

    def close(self) -> None:
        if self._handle is not None:
            self._api.llama_sampler_free(self._handle)
            self._handle = None


def _utf8(text: str) -> bytes:
    # A lone surrogate has no UTF-8, and llama.cpp ends the process for invalid UTF-8.
    return text.encode("utf-8", "replace")


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
