"""What a model is made of: the numbers from which its memory and its work follow, and where they are read.

A model is known by name (`models.yaml`, written by hand) or by its config.json, as Hugging Face writes it. Nothing is fetched.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..ledger.files import read_given_text
from .errors import ServingError

VOCAB_STEP = 64  # vLLM pads the vocabulary to a multiple of this
FAMILIES = (
    "deepseek_v3", "gemma2", "gemma3", "gemma3_text", "gpt_oss", "llama", "mistral", "mixtral", "phi3", "qwen2", "qwen3",
    "qwen3_moe",
)  # fmt: skip
WINDOWED_FAMILIES = ("gemma2", "gemma3_text", "gpt_oss", "mistral")
"""The families whose `sliding_window` is meant; Qwen's is switched off unless `use_sliding_window` says otherwise."""
TIED_FAMILIES = {"gemma2": True, "gemma3_text": True}
STORED_PRECISIONS = {"fp8": "fp8", "mxfp4": "mxfp4"}


@dataclass(frozen=True)
class Experts:
    """A layer of experts: each token goes to `used` of `count`, and to the shared ones."""

    count: int
    used: int
    width: int
    shared_width: int = 0
    dense_layers: int = 0
    """How many of the first layers have an ordinary MLP in place of experts."""
    corrected: bool = False
    """Whether the router carries one more number for each expert (DeepSeek-V3)."""


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: a compressed vector of each token is cached, not its keys and values."""

    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int


@dataclass(frozen=True)
class Architecture:
    """A decoder's numbers; `windowed` of its layers see only the last `window` tokens."""

    name: str
    source: str
    kind: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    positions: int
    tied: bool = False
    window: int = 0
    windowed: int = 0
    norms: int = 2
    qk_norm: bool = False
    qkv_bias: bool = False
    inner_bias: bool = False
    """Whether output projection, router and experts have biases too, and each head a sink (gpt-oss)."""
    experts: Experts | None = None
    latent: Latent | None = None
    stored: str = ""
    """The precision that the weights come in where it is not 16 bits: fp8 or mxfp4."""
    unseen: str = ""
    """What the numbers leave out, in words."""

    @property
    def dense_layers(self) -> int:
        """Return how many layers have an ordinary MLP."""
        return self.experts.dense_layers if self.experts else self.layers

    @property
    def cached_numbers(self) -> int:
        """Return how many numbers a layer keeps of a token, over all heads."""
        if self.latent:
            return self.latent.kv_rank + self.latent.rope
        return 2 * self.kv_heads * self.head_dim

    def splits(self, gpus: int) -> bool:
        """Tell whether tensor parallelism over so many GPUs is possible: heads and widths divide."""
        widths = [self.intermediate] if self.dense_layers else []
        widths += [self.experts.width, self.experts.shared_width] if self.experts else []
        shared = self.latent is not None or self.kv_heads % gpus == 0 or gpus % self.kv_heads == 0
        return shared and all(width % gpus == 0 for width in (self.heads, self.padded_vocab, *widths))

    @property
    def padded_vocab(self) -> int:
        """Return the rows of the embedding as vLLM pads them."""
        return -(-self.vocab // VOCAB_STEP) * VOCAB_STEP

    def cached_per_gpu(self, gpus: int) -> int:
        """Return how many numbers of a token a layer keeps on each GPU.

        Key and value heads are dealt out, and copied where there are fewer of them than GPUs; a compressed vector is
        the same for all heads, so each GPU keeps the whole of it.
        """
        if self.latent:
            return self.cached_numbers
        return 2 * max(1, self.kv_heads // gpus) * self.head_dim


@cache
def _table() -> dict[str, dict[str, Any]]:
    read = yaml.safe_load(Path(__file__).with_name("models.yaml").read_text(encoding="utf-8"))
    return dict(read)


def list_models() -> tuple[str, ...]:
    """Return the names of the models in the table."""
    return tuple(_table())


def find_model(asked: str, field: str = "--model") -> Architecture:
    """Return a model by its name in the table, the name of its source, or the path of a config.json."""
    for name, config in _table().items():
        if asked.lower() in (name.lower(), str(config["source"]).lower()):
            return parse_architecture(config, name, str(config["source"]))
    file = Path(asked)
    if file.is_dir():
        return read_architecture(file / "config.json")
    if file.suffix == ".json" or file.is_file():
        return read_architecture(file)
    near = difflib.get_close_matches(asked.lower(), [name.lower() for name in list_models()], 1)
    meant = [name for name in list_models() if [name.lower()] == near]
    raise ServingError(
        f"no model is known as {asked!r}", code="unknown_model", field=field, got=asked, allowed=[*list_models(), "the path of a config.json"],
        hint=f"Did you mean {meant[0]}?" if meant else "Give the path of the config.json that lies beside the weights.",
    )  # fmt: skip


class ConfigNumbers:
    """The keys of a config; what is missing or no number is gathered, so that all of it is said at once."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.missing: list[str] = []

    def whole(self, *names: str, default: int | None = None) -> int:
        """Return the first of these keys that is there."""
        for name in names:
            value = self.config.get(name)
            if value is None:
                continue
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
            self.missing.append(f"{name} (a whole number above 0, not {value!r})")
            return 1
        if default is not None:
            return default
        self.missing.append(" or ".join(names))
        return 1


def read_architecture(file: Path) -> Architecture:
    """Read a config.json; the weights are looked for beside it."""
    try:
        config = json.loads(read_given_text(file))
    except OSError as error:
        raise ServingError(
            f"{file} cannot be read: {error.strerror or error}", code="unknown_model", field="--model"
        ) from None
    except ValueError as error:
        raise ServingError(
            f"{file} is no JSON: {error}", code="unknown_model", field="--model", allowed="a model's config.json"
        ) from None
    if not isinstance(config, dict):
        raise ServingError(
            f"{file} holds no object", code="unknown_model", field="--model", allowed="a model's config.json"
        )
    folder = file.resolve().parent
    return parse_architecture(config, folder.name or file.stem, str(folder))


def parse_architecture(config: Mapping[str, Any], name: str, source: str) -> Architecture:
    """Return the numbers of a config, or say which are missing."""
    unseen, config = "", dict(config)
    if isinstance(inner := config.get("text_config"), dict):
        unseen = "the vision tower: only the language model's part is counted"
        config = {**{key: config[key] for key in ("quantization_config",) if key in config}, **inner}
    kind = str(config.get("model_type") or "")
    kind = "gemma3_text" if kind == "gemma3" else kind
    if kind not in FAMILIES:
        said = f"the family {kind!r} is not known" if kind else "its configuration names no model_type"
        raise ServingError(
            f"{name}: {said}, so its tensors cannot be counted",
            code="unknown_model", field="model_type", got=kind or None, allowed=list(FAMILIES),
            hint="A plain decoder with RMSNorm, gated MLP and no biases can be planned as model_type llama.",
        )  # fmt: skip
    numbers = ConfigNumbers(config)
    made = _build_architecture(numbers, kind, name, source, unseen)
    if numbers.missing:
        raise ServingError(
            f"{name}: its configuration lacks {', '.join(numbers.missing)}", code="unknown_model", field=numbers.missing[0].split()[0],
            hint="Give the config.json that lies beside the weights, with these keys in it.",
        )  # fmt: skip
    return made


def _build_architecture(numbers: ConfigNumbers, kind: str, name: str, source: str, unseen: str) -> Architecture:
    config = numbers.config
    hidden, layers = numbers.whole("hidden_size"), numbers.whole("num_hidden_layers")
    heads = numbers.whole("num_attention_heads")
    window, windowed = _windows(numbers, kind, layers)
    return Architecture(
        name=name, source=source, kind=kind, hidden=hidden, layers=layers, heads=heads,
        kv_heads=numbers.whole("num_key_value_heads", default=heads),
        head_dim=numbers.whole("head_dim", default=max(1, hidden // heads)),
        intermediate=numbers.whole("intermediate_size"), vocab=numbers.whole("vocab_size"),
        positions=numbers.whole("max_position_embeddings"),
        tied=bool(config.get("tie_word_embeddings", TIED_FAMILIES.get(kind, False))),
        window=window, windowed=windowed,
        norms=4 if kind.startswith("gemma") else 2,
        qk_norm=kind in ("qwen3", "qwen3_moe", "gemma3_text"),
        qkv_bias=kind in ("qwen2", "gpt_oss") or (kind == "llama" and config.get("attention_bias") is True),
        inner_bias=kind == "gpt_oss",
        experts=_experts(numbers, kind), latent=_latent(numbers, kind), stored=_stored_precision(config, name), unseen=unseen,
    )  # fmt: skip


def _windows(numbers: ConfigNumbers, kind: str, layers: int) -> tuple[int, int]:
    """Return the window, and how many layers are bounded by it."""
    config = numbers.config
    meant = kind in WINDOWED_FAMILIES or config.get("use_sliding_window") is True
    if not meant or config.get("sliding_window") is None:
        return 0, 0
    window = numbers.whole("sliding_window")
    if isinstance(types := config.get("layer_types"), list):
        return window, sum(each == "sliding_attention" for each in types)
    if kind == "gemma3_text":
        return window, layers - layers // numbers.whole("sliding_window_pattern", default=6)
    if kind in ("gemma2", "gpt_oss"):
        return window, (layers + 1) // 2
    return window, layers


def _experts(numbers: ConfigNumbers, kind: str) -> Experts | None:
    if kind in ("mixtral", "gpt_oss"):
        return Experts(
            numbers.whole("num_local_experts"), numbers.whole("num_experts_per_tok", "experts_per_token"),
            numbers.whole("intermediate_size"),
        )  # fmt: skip
    if kind == "qwen3_moe":
        return Experts(
            numbers.whole("num_experts", "num_local_experts"), numbers.whole("num_experts_per_tok"),
            numbers.whole("moe_intermediate_size"), dense_layers=len(numbers.config.get("mlp_only_layers") or ()),
        )  # fmt: skip
    if kind == "deepseek_v3":
        width = numbers.whole("moe_intermediate_size")
        return Experts(
            numbers.whole("n_routed_experts"), numbers.whole("num_experts_per_tok"), width,
            int(numbers.config.get("n_shared_experts") or 0) * width,
            int(numbers.config.get("first_k_dense_replace") or 0), corrected=True,
        )  # fmt: skip
    return None


def _latent(numbers: ConfigNumbers, kind: str) -> Latent | None:
    if kind != "deepseek_v3":
        return None
    return Latent(
        int(numbers.config.get("q_lora_rank") or 0), numbers.whole("kv_lora_rank"), numbers.whole("qk_nope_head_dim"),
        numbers.whole("qk_rope_head_dim"), numbers.whole("v_head_dim"),
    )  # fmt: skip


def _stored_precision(config: Mapping[str, Any], name: str) -> str:
    """Return the precision that the weights are kept in; a method that is not known cannot be counted."""
    asked = config.get("quantization_config")
    if not isinstance(asked, dict):
        return ""
    method = str(asked.get("quant_method", ""))
    if method not in STORED_PRECISIONS:
        raise ServingError(
            f"{name}: weights quantised by {method!r} are not counted here", code="unknown_model", field="quantization_config.quant_method",
            got=method, allowed=[*STORED_PRECISIONS, "none"], hint="Plan the model without quantisation, or in FP8 (--dtype fp8).",
        )  # fmt: skip
    return STORED_PRECISIONS[method]
