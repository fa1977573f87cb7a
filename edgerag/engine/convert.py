"""A sentence-transformers folder of the BERT family, embedder or cross-encoder, becomes a GGUF file, without torch.

What a folder must hold: ``config.json`` (BertModel), ``model.safetensors``, a lower-casing WordPiece
vocabulary, and in ``modules.json`` nothing but transformer, mean or CLS pooling, and normalisation. A folder whose
model is a BertForSequenceClassification of one class or two is a reranker, and keeps its pooler and classifier.
Anything else would give other vectors than the original, so it is refused by name. The names of keys
and tensors are those of llama.cpp's convert_hf_to_gguf.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edgerag.engine.files import sha256_of
from edgerag.errors import ModelDamaged, ModelMissing, ModelWrongKind
from edgerag.machine.cpu import read_processor
from edgerag.machine.disk import storage_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WeightType = Literal["F32", "F16", "BF16", "Q8_0"]

SUPPORTED = (
    "Supported: BertModel with a lower-casing WordPiece vocabulary, mean or CLS pooling, model.safetensors; "
    "BertForSequenceClassification of one class or two."
)

_GELU = frozenset({"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"})
_MODULES = frozenset({"Transformer", "Pooling", "Normalize"})
_CLASSIFIES, _MOST_CLASSES = "BertForSequenceClassification", 2  # relevant or not
_MARK = "▁"  # llama.cpp marks the start of a word; BERT's vocabulary marks the continuation

_TENSORS = (
    (r"embeddings\.word_embeddings\.weight", "token_embd.weight", ("vocab_size", "hidden_size")),
    (r"embeddings\.position_embeddings\.weight", "position_embd.weight", ("max_position_embeddings", "hidden_size")),
    (r"embeddings\.token_type_embeddings\.weight", "token_types.weight", ("type_vocab_size", "hidden_size")),
    (r"embeddings\.LayerNorm\.(weight|bias)", "token_embd_norm.{0}", ("hidden_size",)),
)
_LAYER_TENSORS = (
    ("attention.self.query", "attn_q", ("hidden_size", "hidden_size")),
    ("attention.self.key", "attn_k", ("hidden_size", "hidden_size")),
    ("attention.self.value", "attn_v", ("hidden_size", "hidden_size")),
    ("attention.output.dense", "attn_output", ("hidden_size", "hidden_size")),
    ("attention.output.LayerNorm", "attn_output_norm", ("hidden_size",)),
    ("intermediate.dense", "ffn_up", ("intermediate_size", "hidden_size")),
    ("output.dense", "ffn_down", ("hidden_size", "intermediate_size")),
    ("output.LayerNorm", "layer_output_norm", ("hidden_size",)),
)
_CLASSIFIER = "classifier"
_QUANTISED = re.compile(r"token_embd\.weight|blk\.\d+\.(attn_(q|k|v|output)|ffn_(up|down))\.weight")


@dataclass(frozen=True, slots=True)
class Source:
    """A folder that can be converted, its settings read and checked."""

    folder: Path
    config: Mapping[str, Any]
    pooling: Literal["mean", "cls", "rank"]
    max_tokens: int  # special tokens included
    vocabulary: tuple[str, ...]
    prompts: Mapping[str, str]  # put before a "query" or a "passage"
    class_count: int = 0  # of a reranker

    @property
    def weights_file(self) -> Path:
        return self.folder / "model.safetensors"


def read_source(folder: Path) -> Source:
    """Reads what ``folder`` says about its model. Raises ModelMissing, ModelDamaged or ModelWrongKind."""
    config = _json(folder / "config.json")
    _check_config(folder, config)
    classes = _class_count(folder, config)
    pooling: Literal["mean", "cls", "rank"] = "rank" if classes else _pooling(folder)
    if not (folder / "model.safetensors").is_file():
        found = ", ".join(sorted(p.name for p in folder.glob("*") if p.suffix in (".bin", ".safetensors", ".onnx")))
        raise ModelMissing(f"{folder} has no model.safetensors, only {found or 'no weights'}.", remedy=SUPPORTED)
    positions = int(config["max_position_embeddings"])
    limit = _json(folder / "sentence_bert_config.json", default={}).get("max_seq_length")
    prompts = _json(folder / "config_sentence_transformers.json", default={}).get("prompts") or {}
    return Source(
        folder=folder,
        config=config,
        pooling=pooling,
        max_tokens=min(positions, limit) if isinstance(limit, int) and limit > 2 else positions,
        vocabulary=_vocabulary(folder, int(config["vocab_size"])),
        prompts={
            "query": str(prompts.get("query") or ""),
            "passage": str(prompts.get("passage") or prompts.get("document") or ""),
        },
        class_count=classes,
    )


def convert(
    source: Source,
    target: Path,
    *,
    weight_type: WeightType,
    name: str,
    licence: str,
    languages: tuple[str, ...],
    source_url: str = "",
) -> None:
    """Writes the GGUF file. Raises ModelDamaged for weights that do not fit the settings, OSError when
    the disk refuses; what was written until then is left to the caller to remove."""
    import gguf

    config = source.config
    writer = gguf.GGUFWriter(target, "bert")
    writer.add_type("model")
    writer.add_name(name)
    writer.add_license(licence)
    writer.add_languages(list(languages))
    if source_url:
        writer.add_source_url(source_url)
    writer.add_context_length(int(config["max_position_embeddings"]))
    writer.add_embedding_length(int(config["hidden_size"]))
    writer.add_feed_forward_length(int(config["intermediate_size"]))
    writer.add_block_count(int(config["num_hidden_layers"]))
    writer.add_head_count(int(config["num_attention_heads"]))
    writer.add_layer_norm_eps(float(config.get("layer_norm_eps", 1e-12)))
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType[source.pooling.upper()])
    if source.class_count > 1:
        writer.add_classifier_output_labels(_labels(config))
    writer.add_file_type(
        gguf.LlamaFileType.ALL_F32 if weight_type == "F32" else gguf.LlamaFileType[f"MOSTLY_{weight_type}"]
    )
    writer.add_string("edgerag.weights_sha256", sha256_of(source.weights_file))
    writer.add_uint32("edgerag.max_tokens", source.max_tokens)
    for role, prompt in source.prompts.items():
        writer.add_string(f"edgerag.{role}_prompt", prompt)
    _write_vocabulary(writer, source)
    kind = gguf.GGMLQuantizationType[weight_type]
    for target_name, tensor in _tensors(source):
        if weight_type != "F32" and _QUANTISED.fullmatch(target_name):
            if tensor.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0]:
                raise ModelWrongKind(
                    f"{source.folder}: rows of {tensor.shape[-1]} values cannot be stored as {weight_type}.",
                    remedy=SUPPORTED,
                )
            writer.add_tensor(target_name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
        else:
            writer.add_tensor(target_name, tensor)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def auto_weight_type() -> WeightType:
    """The fastest type on this processor whose vectors agree with the original (docs/decisions/021)."""
    features = read_processor().features
    if "AVX-512BF16" in features or "AMX" in features:
        return "BF16"
    return "F16" if "F16C" in features or "NEON" in features else "F32"


def convert_folder(folder: Path, target: Path, *, weight_type: WeightType, name: str) -> None:
    """Reads and converts a folder; licence and languages are taken from the model card in it, if any."""
    source = read_source(folder)
    licence, languages = _model_card(folder)
    try:
        convert(source, target, weight_type=weight_type, name=name, licence=licence, languages=languages)
    except OSError as error:
        raise storage_error(error, target) from error


# ---------------------------------------------------------------- settings


def _model_card(folder: Path) -> tuple[str, tuple[str, ...]]:
    """(licence, languages) from the head of README.md, as the hubs write it; "*" when it does not say."""
    try:
        text = (folder / "README.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ("*",)
    head = text.split("---", 2)[1] if text.startswith("---") and text.count("---") > 1 else ""
    licence = re.search(r"^license: *(\S+) *$", head, re.MULTILINE)
    language = re.search(r"^language: *(?:\n((?: *- *\S+ *\n)+)|(\S+) *$)", head, re.MULTILINE)
    codes = re.findall(r"[a-z]{2,3}", (language[1] or language[2]).lower()) if language else []
    many = not codes or "multilingual" in (language[0] if language else "")
    return (licence[1] if licence else ""), ("*",) if many else tuple(codes)


def _check_config(folder: Path, config: Mapping[str, Any]) -> None:
    architectures = config.get("architectures") or ["?"]
    family = str(config.get("model_type") or architectures[0])
    if family != "bert":
        raise ModelWrongKind(f"{folder} holds a model of the family {family!r}.", remedy=SUPPORTED)
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise ModelWrongKind(f"{folder} uses {config['position_embedding_type']!r} positions.", remedy=SUPPORTED)
    if config.get("hidden_act", "gelu") not in _GELU:
        raise ModelWrongKind(f"{folder} uses the activation {config['hidden_act']!r}, not gelu.", remedy=SUPPORTED)
    for key in (
        *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
        *("max_position_embeddings", "vocab_size", "type_vocab_size"),
    ):
        value = config.get(key)
        if not isinstance(value, int) or not 0 < value < 10_000_000:
            raise ModelDamaged(f"{folder / 'config.json'} has {value!r} for {key!r}, not a count.")
    if config["hidden_size"] % config["num_attention_heads"]:
        raise ModelDamaged(f"{folder / 'config.json'}: hidden_size is no multiple of num_attention_heads.")


def _class_count(folder: Path, config: Mapping[str, Any]) -> int:
    """How many classes a cross-encoder has; 0 for an embedder. Raises ModelWrongKind for what sorts into more."""
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or _CLASSIFIES not in architectures:
        return 0
    count = len(_labels(config))
    if count > _MOST_CLASSES:
        raise ModelWrongKind(f"{folder} sorts texts into {count} classes, which is no judgement of a passage.")
    return count


def _labels(config: Mapping[str, Any]) -> list[str]:
    """Of the classes, in their order; transformers writes none where there are two without names."""
    names = config.get("id2label") or {}
    if not isinstance(names, dict) or not all(str(key).isdecimal() for key in names):
        raise ModelDamaged(f"config.json has {names!r} for 'id2label', not a name for each class.")
    return [str(names[key]) for key in sorted(names, key=int)] if names else ["LABEL_0", "LABEL_1"]


def _pooling(folder: Path) -> Literal["mean", "cls"]:
    """As ``modules.json`` says; a folder without one is pooled by the mean, as sentence-transformers does."""
    modules = _json(folder / "modules.json", default=[])
    pooling_folder = "1_Pooling"
    for module in modules if isinstance(modules, list) else []:
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind not in _MODULES:
            raise ModelWrongKind(f"{folder} has a module {kind!r} behind its transformer.", remedy=SUPPORTED)
        if kind == "Pooling":
            pooling_folder = str(module.get("path", pooling_folder))
    settings = _json(folder / pooling_folder / "config.json", default={} if not modules else None)
    chosen = [key for key, value in settings.items() if key.startswith("pooling_mode_") and value]
    mode = settings.get("pooling_mode")
    if chosen == ["pooling_mode_mean_tokens"] or mode == "mean" or not settings:
        return "mean"
    if chosen == ["pooling_mode_cls_token"] or mode == "cls":
        return "cls"
    raise ModelWrongKind(f"{folder} pools by {', '.join(chosen) or mode!r}.", remedy=SUPPORTED)


def _vocabulary(folder: Path, size: int) -> tuple[str, ...]:
    settings = _json(folder / "tokenizer_config.json", default={})
    if settings.get("do_lower_case", True) is False:
        raise ModelWrongKind(f"{folder} keeps upper case apart (a cased vocabulary).", remedy=SUPPORTED)
    if (folder / "vocab.txt").is_file():
        try:
            words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise ModelDamaged(f"{folder / 'vocab.txt'} is not UTF-8 text.") from error
        if words[-1] == "":
            words.pop()
    else:
        model = _json(folder / "tokenizer.json").get("model") or {}
        if model.get("type") != "WordPiece":
            raise ModelWrongKind(f"{folder} has a {model.get('type')!r} vocabulary, not WordPiece.", remedy=SUPPORTED)
        words = sorted(model["vocab"], key=model["vocab"].__getitem__)
    if not size - 64 <= len(words) <= size:  # some vocabularies are padded to a round number in the weights
        raise ModelDamaged(f"{folder}: {len(words):,} words in the vocabulary, but {size:,} in config.json.")
    for token in ("[UNK]", "[CLS]", "[SEP]", "[PAD]"):
        if token not in words:
            raise ModelDamaged(f"{folder} has no {token} in its vocabulary.")
    return tuple(words + [f"[PAD{n}]" for n in range(len(words), size)])


def _json(file: Path, default: Any = None) -> Any:
    """The content of a JSON file. Raises ModelMissing unless there is a default, ModelDamaged."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if default is not None:
            return default
        raise ModelMissing(
            f"{file.parent} is not a sentence-transformers folder: {file.name} is missing.", remedy=SUPPORTED
        ) from error
    except (OSError, ValueError) as error:
        raise ModelDamaged(f"{file} cannot be read: {error}.") from error


# ---------------------------------------------------------------- content


def _write_vocabulary(writer: Any, source: Source) -> None:
    import gguf

    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    words = source.vocabulary
    tokens = [
        word if word in special else word[2:] if word.startswith("##") and len(word) > 2 else _MARK + word
        for word in words
    ]
    types = [
        gguf.TokenType.UNKNOWN
        if word == "[UNK]"
        else gguf.TokenType.CONTROL
        if word in special
        else gguf.TokenType.UNUSED
        if re.fullmatch(r"\[(unused|PAD)\d+\]", word)
        else gguf.TokenType.NORMAL
        for word in words
    ]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_type_count(int(source.config["type_vocab_size"]))
    writer.add_bos_token_id(words.index("[CLS]"))
    writer.add_eos_token_id(words.index("[SEP]"))
    writer.add_sep_token_id(words.index("[SEP]"))
    writer.add_pad_token_id(words.index("[PAD]"))
    writer.add_unk_token_id(words.index("[UNK]"))
    if "[MASK]" in words:
        writer.add_mask_token_id(words.index("[MASK]"))


def _expected(config: Mapping[str, Any], class_count: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name in the folder -> name in the GGUF file and shape."""
    expected = {}
    for pattern, target, dims in _TENSORS:
        shape = tuple(int(config[key]) for key in dims)
        for part in ("weight", "bias") if "(" in pattern else ("weight",):
            name = pattern.replace("\\", "").replace("(weight|bias)", part)
            expected[name] = (target.format(part), shape)
    for layer in range(config["num_hidden_layers"]):
        for name, target, dims in _LAYER_TENSORS:
            shape = tuple(int(config[key]) for key in dims)
            expected[f"encoder.layer.{layer}.{name}.weight"] = (f"blk.{layer}.{target}.weight", shape)
            expected[f"encoder.layer.{layer}.{name}.bias"] = (f"blk.{layer}.{target}.bias", shape[:1])
    if class_count:
        hidden = int(config["hidden_size"])
        for name, target, rows in (("pooler.dense", "cls", hidden), (_CLASSIFIER, "cls.output", class_count)):
            expected[f"{name}.weight"] = (f"{target}.weight", (rows, hidden))
            expected[f"{name}.bias"] = (f"{target}.bias", (rows,))
    return expected


def _tensors(source: Source) -> Iterator[tuple[str, NDArray[np.float32]]]:
    import numpy as np
    from safetensors import SafetensorError, safe_open

    file = source.weights_file
    try:
        with safe_open(file, framework="numpy") as weights:
            names = set(weights.keys())
            prefix = "bert." if any(name.startswith("bert.") for name in names) else ""
            for inner, (target, shape) in _expected(source.config, source.class_count).items():
                name = inner if inner.startswith(_CLASSIFIER) else prefix + inner  # the head is not the BERT's
                if name not in names:
                    raise ModelDamaged(f"{file} has no tensor {name!r}.")
                found = tuple(weights.get_slice(name).get_shape())
                if found != shape:
                    raise ModelDamaged(f"{file}: tensor {name!r} has the shape {found}, not {shape}.")
                tensor = np.ascontiguousarray(weights.get_tensor(name), dtype=np.float32)
                if not np.isfinite(tensor).all():
                    raise ModelDamaged(f"{file}: tensor {name!r} holds values that are not numbers.")
                yield target, tensor
    except (SafetensorError, OSError) as error:
        raise ModelDamaged(f"{file} is damaged or half copied: {error}.", remedy="Copy or pull it again.") from error
