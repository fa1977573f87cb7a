"""The weights and vocabulary of one GGUF file."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Literal

from edgerag.engine.llama.library import decoded, encoded, library
from edgerag.errors import ModelDamaged, ModelError, ModelTooLarge

TokenKind = Literal["normal", "control", "user_defined", "byte", "unknown", "unused"]
# How the weights come into memory: mapped from the file (its pages are the system's to drop), read into
# memory of our own, or mapped and locked. "auto" is llama.cpp's choice.
LoadMode = Literal["auto", "read", "mmap", "mmap+mlock"]
_LOAD_MODES: dict[LoadMode, str] = {"auto": "AUTO", "read": "NONE", "mmap": "MMAP", "mmap+mlock": "MMAP_MLOCK"}


class Model:
    """The weights and vocabulary of one GGUF file."""

    def __init__(
        self,
        path: Path,
        *,
        check_tensors: bool = False,
        vocabulary_only: bool = False,
        load_mode: LoadMode = "auto",
        repack: bool = True,
    ) -> None:
        """``repack``: weights of some types are laid out anew for this processor, a copy in memory that prefills
        up to twice as fast. Raises ModelDamaged when llama.cpp refuses the file."""
        self._library = library()
        self._api = self._library.api
        parameters = self._api.llama_model_default_params()
        parameters.load_mode = getattr(self._api, f"LLAMA_LOAD_MODE_{_LOAD_MODES[load_mode]}")
        parameters.use_extra_bufts = repack
        parameters.n_gpu_layers = 0
        parameters.check_tensors = check_tensors
        parameters.vocab_only = vocabulary_only
        self._library.mark()
        self._handle: int | None = self._api.llama_model_load_from_file(str(path).encode(), parameters)
        if not self._handle and self._library.lacked_memory():
            raise ModelTooLarge(
                f"The memory for {path} cannot be had: {self._library.complaint()}.",
                remedy="Close other programs, raise the limit of this process, or take a smaller model.",
            )
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
        self.separator = int(self._api.llama_vocab_sep(self._vocabulary))
        self.class_count = int(self._api.llama_model_n_cls_out(self._handle))  # of a classifier head

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
        data = encoded(text)
        room = 2 * len(data) + 8  # no tokenizer makes more tokens than bytes, specials apart
        buffer = (ctypes.c_int32 * room)()
        count = self._tokenize(data, buffer, room, add_ends, special)
        if count < 0:
            raise ModelError(f"{self.path} makes {-count} tokens of {len(data)} bytes of text.")
        return buffer[:count]

    def count_tokens(self, text: str) -> int:
        """How many tokens ``tokenize(text)`` gives, without making the list."""
        return abs(self._tokenize(encoded(text), None, 0, False, False))

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
        return [decoded(text_of(self._vocabulary, token)) for token in range(self.vocabulary_size)]

    def scores(self) -> list[float]:
        """How likely every token is, as its file says, by number; logarithms."""
        _ = self.handle
        score_of = self._api.llama_vocab_get_score
        return [float(score_of(self._vocabulary, token)) for token in range(self.vocabulary_size)]

    def class_label(self, number: int) -> str:
        """What the classifier calls one of its classes; "" when it does not say."""
        return decoded(self._api.llama_model_cls_label(self.handle, number))

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
