"""The architecture of a model: the numbers that determine its memory and work, read from a table or a config.

A model is found by its name in `models.yaml`, written by hand, or by its config.json, as Hugging Face writes it.
Nothing is fetched.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..ledger.files import read_given_text
from .errors import ServingError

VOCAB_STEP = 64  # vLLM pads the vocabulary to a multiple of this
FAMILIES = (
    "deepseek_v3", "gemma2", "gemma3", "gemma3_text", "gpt_oss", "llama", "mistral", "mixtral", "phi3", "qwen2",
    "qwen3", "qwen3_moe",
)  # fmt: skip  # a table
WINDOWED_FAMILIES = ("gemma2", "gemma3_text", "gpt_oss", "mistral")
"""The families whose `sliding_window` is in use; Qwen's is off unless `use_sliding_window` is set."""
TIED_FAMILIES = {"gemma2": True, "gemma3_text": True}
INT4_METHODS = ("awq", "gptq")
INT4_GROUP = 128  # numbers that share a scale and a zero, in nearly all published checkpoints
STORED_PRECISIONS = {"fp8": "fp8", "mxfp4": "mxfp4", **{method: method for method in INT4_METHODS}}


@dataclass(frozen=True)
class Experts:
    """A layer of experts: each token is routed to `used` of `count` experts, and to the shared ones."""

    count: int
    used: int
    width: int
    shared_width: int = 0
    dense_layers: int = 0
    """Number of first layers with an ordinary MLP in place of experts."""
    corrected: bool = False
    """Whether the router has one more number for each expert (DeepSeek-V3)."""


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: a compressed vector of each token is cached instead of its keys and values."""

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
    """The precision of the stored weights where it is not 16 bits: fp8, mxfp4, awq or gptq."""
    group: int = 0
    """Numbers that share a scale and a zero, where the weights are INT4 (awq, gptq); -1: those of a whole column."""
    assumed_int4: bool = False
    """Whether INT4 is only assumed: `source` names the 16-bit weights."""
    unseen: str = ""
    """Parts that the numbers do not count, in words."""

    @property
    def dense_layers(self) -> int:
        """Return the number of layers with an ordinary MLP."""
        return self.experts.dense_layers if self.experts else self.layers

    @property
    def cached_numbers(self) -> int:
        """Return how many numbers a layer caches of a token, over all heads."""
        if self.latent:
            return self.latent.kv_rank + self.latent.rope
        return 2 * self.kv_heads * self.head_dim

    def can_split(self, gpus: int) -> bool:
        """Return whether tensor parallelism over `gpus` GPUs is possible: heads and widths are divisible."""
        widths = [self.intermediate] if self.dense_layers else []
        widths += [self.experts.width, self.experts.shared_width] if self.experts else []
        shared = self.latent is not None or self.kv_heads % gpus == 0 or gpus % self.kv_heads == 0
        even = all(width % gpus == 0 for width in (self.heads, self.padded_vocab, *widths))
        return shared and even and self._keeps_groups(gpus, widths)

    def _keeps_groups(self, gpus: int, widths: list[int]) -> bool:
        """Return whether no group of INT4 numbers is cut.

        vLLM 0.32 refuses to start where one of a dense layer is, and leaves its fast kernel where one of an expert is.
        """
        if self.group <= 0:
            return True
        attended = self.heads * (self.latent.value if self.latent else self.head_dim)
        return all((width // gpus) % self.group == 0 for width in (attended, *widths) if width)

    @property
    def padded_vocab(self) -> int:
        """Return the number of embedding rows after vLLM's padding."""
        return -(-self.vocab // VOCAB_STEP) * VOCAB_STEP

    def count_cached_per_gpu(self, gpus: int) -> int:
        """Return how many numbers of a token a layer caches on each GPU.

        Key and value heads are distributed, and copied where there are fewer of them than GPUs; a compressed vector is
        the same for all heads, so each GPU caches all of it.
        """
        if self.latent:
            return self.cached_numbers
        return 2 * max(1, self.kv_heads // gpus) * self.head_dim


@cache
def _load_table() -> dict[str, dict[str, Any]]:
    return dict(yaml.safe_load(Path(__file__).with_name("models.yaml").read_text(encoding="utf-8")))


def list_models() -> tuple[str, ...]:
    """Return the names of the models in the table."""
    return tuple(_load_table())


def find_model(wanted: str, field: str = "--model") -> Architecture:
    """Return a model by its name in the table, the name of its source, or the path of a config.json."""
    for name, config in _load_table().items():
        if wanted.lower() in (name.lower(), str(config["source"]).lower()):
            return parse_architecture(config, name, str(config["source"]))
    file = Path(wanted)
    if file.is_dir():
        return read_architecture(file / "config.json")
    if file.suffix == ".json" or file.is_file():
        return read_architecture(file)
    near = difflib.get_close_matches(wanted.lower(), [name.lower() for name in list_models()], 1)
    suggestions = [name for name in list_models() if [name.lower()] == near]
    raise ServingError(
        f"no model is known as {wanted!r}",
        code="unknown_model",
        field=field,
        got=wanted,
        allowed=[*list_models(), "the path of a config.json"],
        hint=f"Did you mean {suggestions[0]}?"
        if suggestions
        else "Give the path of the config.json that lies beside the weights.",
    )


def assume_int4(model: Architecture, method: str) -> Architecture:
    """Return a 16-bit model as a checkpoint quantised to INT4 would be: groups of 128, another file than `source`.

    Raises
    ------
    ServingError
        The weights are stored in fewer bits already, or their widths are no multiples of 128.
    """
    if model.stored:
        raise ServingError(
            f"the weights come in {model.stored.upper()} already", field="--dtype", got=method, allowed="auto"
        )
    return _check_groups(replace(model, stored=method, group=INT4_GROUP, assumed_int4=True))


def _check_groups(model: Architecture) -> Architecture:
    if not model.can_split(1):
        raise ServingError(
            f"{model.name}: its widths are no multiples of {model.group}, the group size of INT4",
            code="unknown_model",
            field="quantization_config.group_size",
            got=model.group,
            hint="Give the config.json of the quantised checkpoint: its makers may have padded the widths.",
        )
    return model


class ConfigNumbers:
    """The numbers of a config; missing and invalid keys are collected, so that one error names them all."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.missing: list[str] = []

    def read_integer(self, *names: str, default: int | None = None) -> int:
        """Return the positive integer of the first of these keys that is set, else the default.

        Where the value is invalid, or missing without a default, the mistake is recorded and 1 returned.
        """
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
    """Read a config.json; its folder is the source of the weights."""
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
    """Return the architecture of a config, or raise an error that names the missing numbers."""
    unseen, config = "", dict(config)
    if isinstance(inner := config.get("text_config"), dict):
        unseen = "the vision tower: only the language model's part is counted"
        config = {**{key: config[key] for key in ("quantization_config",) if key in config}, **inner}
    kind = str(config.get("model_type") or "")
    kind = "gemma3_text" if kind == "gemma3" else kind
    if kind not in FAMILIES:
        reason = f"the family {kind!r} is not known" if kind else "its configuration names no model_type"
        raise ServingError(
            f"{name}: {reason}, so its tensors cannot be counted",
            code="unknown_model",
            field="model_type",
            got=kind or None,
            allowed=list(FAMILIES),
            hint="A plain decoder with RMSNorm, gated MLP and no biases can be planned as model_type llama.",
        )
    numbers = ConfigNumbers(config)
    architecture = _build_architecture(numbers, kind, name, source, unseen)
    if numbers.missing:
        raise ServingError(
            f"{name}: its configuration lacks {', '.join(numbers.missing)}",
            code="unknown_model",
            field=numbers.missing[0].split()[0],
            hint="Give the config.json that lies beside the weights, with these keys in it.",
        )
    return _check_groups(architecture) if architecture.group else architecture


def _build_architecture(numbers: ConfigNumbers, kind: str, name: str, source: str, unseen: str) -> Architecture:
    config = numbers.config
    hidden, layers = numbers.read_integer("hidden_size"), numbers.read_integer("num_hidden_layers")
    heads = numbers.read_integer("num_attention_heads")
    window, windowed = _read_windows(numbers, kind, layers)
    return Architecture(
        name=name, source=source, kind=kind, hidden=hidden, layers=layers, heads=heads,
        kv_heads=numbers.read_integer("num_key_value_heads", default=heads),
        head_dim=numbers.read_integer("head_dim", default=max(1, hidden // heads)),
        intermediate=numbers.read_integer("intermediate_size"), vocab=numbers.read_integer("vocab_size"),
        positions=numbers.read_integer("max_position_embeddings"),
        tied=bool(config.get("tie_word_embeddings", TIED_FAMILIES.get(kind, False))),
        window=window, windowed=windowed,
        norms=4 if kind.startswith("gemma") else 2,
        qk_norm=kind in ("qwen3", "qwen3_moe", "gemma3_text"),
        qkv_bias=kind in ("qwen2", "gpt_oss") or (kind == "llama" and config.get("attention_bias") is True),
        inner_bias=kind == "gpt_oss",
        experts=_read_experts(numbers, kind), latent=_read_latent(numbers, kind),
        stored=(stored := _read_stored_precision(config, name)),
        group=_read_group(config, name) if stored in INT4_METHODS else 0, unseen=unseen,
    )  # fmt: skip  # a table


def _read_windows(numbers: ConfigNumbers, kind: str, layers: int) -> tuple[int, int]:
    """Return the window in tokens, and the number of layers that it limits."""
    config = numbers.config
    is_used = kind in WINDOWED_FAMILIES or config.get("use_sliding_window") is True
    if not is_used or config.get("sliding_window") is None:
        return 0, 0
    window = numbers.read_integer("sliding_window")
    if isinstance(types := config.get("layer_types"), list):
        return window, sum(kind_of_layer == "sliding_attention" for kind_of_layer in types)
    if kind == "gemma3_text":
        return window, layers - layers // numbers.read_integer("sliding_window_pattern", default=6)
    if kind in ("gemma2", "gpt_oss"):
        return window, (layers + 1) // 2
    return window, layers


def _read_experts(numbers: ConfigNumbers, kind: str) -> Experts | None:
    if kind in ("mixtral", "gpt_oss"):
        return Experts(
            numbers.read_integer("num_local_experts"),
            numbers.read_integer("num_experts_per_tok", "experts_per_token"),
            numbers.read_integer("intermediate_size"),
        )
    if kind == "qwen3_moe":
        return Experts(
            numbers.read_integer("num_experts", "num_local_experts"),
            numbers.read_integer("num_experts_per_tok"),
            numbers.read_integer("moe_intermediate_size"),
            dense_layers=len(numbers.config.get("mlp_only_layers") or ()),
        )
    if kind == "deepseek_v3":
        width = numbers.read_integer("moe_intermediate_size")
        return Experts(
            numbers.read_integer("n_routed_experts"),
            numbers.read_integer("num_experts_per_tok"),
            width,
            int(numbers.config.get("n_shared_experts") or 0) * width,
            int(numbers.config.get("first_k_dense_replace") or 0),
            corrected=True,
        )
    return None


def _read_latent(numbers: ConfigNumbers, kind: str) -> Latent | None:
    if kind != "deepseek_v3":
        return None
    return Latent(
        int(numbers.config.get("q_lora_rank") or 0),
        numbers.read_integer("kv_lora_rank"),
        numbers.read_integer("qk_nope_head_dim"),
        numbers.read_integer("qk_rope_head_dim"),
        numbers.read_integer("v_head_dim"),
    )


def _read_stored_precision(config: Mapping[str, Any], name: str) -> str:
    """Return the precision of the stored weights; an unknown method is refused."""
    quantization = config.get("quantization_config")
    if not isinstance(quantization, dict):
        return ""
    method = str(quantization.get("quant_method", ""))
    if method not in STORED_PRECISIONS:
        raise ServingError(
            f"{name}: weights quantised by {method!r} are not counted here",
            code="unknown_model",
            field="quantization_config.quant_method",
            got=method,
            allowed=[*STORED_PRECISIONS, "none"],
            hint="Plan the model without quantisation, or in FP8 (--dtype fp8).",
        )
    return STORED_PRECISIONS[method]


def _read_group(config: Mapping[str, Any], name: str) -> int:
    """Return the group size of INT4 weights, by the keys that vLLM reads."""
    quantization = config["quantization_config"]
    bits = quantization.get("bits", quantization.get("w_bit", 4))
    group = quantization.get("group_size", quantization.get("q_group_size", INT4_GROUP))
    if bits != 4 or not isinstance(group, int) or isinstance(group, bool) or group == 0 or group < -1:
        raise ServingError(
            f"{name}: {bits!r} bits in groups of {group!r} are not counted here",
            code="unknown_model",
            field="quantization_config.bits" if bits != 4 else "quantization_config.group_size",
            got=str(bits if bits != 4 else group),
            allowed="4 bits; a group size above 0, or -1",
        )
    return group
