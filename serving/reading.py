"""Read a model's numbers from a config.json as Hugging Face writes it; nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..ledger.files import read_given_text
from ..router import UnknownModel
from .architecture import Architecture, Experts, Latent

__all__ = ["FAMILIES", "architecture", "read_architecture"]

FAMILIES = (
    "deepseek_v3", "gemma2", "gemma3", "gemma3_text", "gpt_oss", "llama", "mistral", "mixtral", "phi3", "qwen2", "qwen3",
    "qwen3_moe",
)  # fmt: skip
WINDOWED_FAMILIES = ("gemma2", "gemma3_text", "gpt_oss", "mistral")
"""The families whose `sliding_window` is meant; Qwen's is switched off unless `use_sliding_window` says otherwise."""
TIED_FAMILIES = {"gemma2": True, "gemma3_text": True}
STORED_PRECISIONS = {"fp8": "fp8", "mxfp4": "mxfp4"}


class Numbers:
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
        raise UnknownModel(f"{file} cannot be read: {error.strerror or error}", field="--model") from None
    except ValueError as error:
        raise UnknownModel(f"{file} is no JSON: {error}", field="--model", allowed="a model's config.json") from None
    if not isinstance(config, dict):
        raise UnknownModel(f"{file} holds no object", field="--model", allowed="a model's config.json")
    folder = file.resolve().parent
    return architecture(config, folder.name or file.stem, str(folder))


def architecture(config: Mapping[str, Any], name: str, source: str) -> Architecture:
    """Return the numbers of a config, or say which are missing."""
    unseen, config = "", dict(config)
    if isinstance(inner := config.get("text_config"), dict):
        unseen = "the vision tower: only the language model's part is counted"
        config = {**{key: config[key] for key in ("quantization_config",) if key in config}, **inner}
    kind = str(config.get("model_type") or "")
    kind = "gemma3_text" if kind == "gemma3" else kind
    if kind not in FAMILIES:
        said = f"the family {kind!r} is not known" if kind else "its configuration names no model_type"
        raise UnknownModel(
            f"{name}: {said}, so its tensors cannot be counted",
            field="model_type", got=kind or None, allowed=list(FAMILIES),
            hint="A plain decoder with RMSNorm, gated MLP and no biases can be planned as model_type llama.",
        )  # fmt: skip
    numbers = Numbers(config)
    made = _build_architecture(numbers, kind, name, source, unseen)
    if numbers.missing:
        raise UnknownModel(
            f"{name}: its configuration lacks {', '.join(numbers.missing)}", field=numbers.missing[0].split()[0],
            hint="Give the config.json that lies beside the weights, with these keys in it.",
        )  # fmt: skip
    return made


def _build_architecture(numbers: Numbers, kind: str, name: str, source: str, unseen: str) -> Architecture:
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


def _windows(numbers: Numbers, kind: str, layers: int) -> tuple[int, int]:
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


def _experts(numbers: Numbers, kind: str) -> Experts | None:
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


def _latent(numbers: Numbers, kind: str) -> Latent | None:
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
        raise UnknownModel(
            f"{name}: weights quantised by {method!r} are not counted here", field="quantization_config.quant_method",
            got=method, allowed=[*STORED_PRECISIONS, "none"], hint="Plan the model without quantisation, or in FP8 (--dtype fp8).",
        )  # fmt: skip
    return STORED_PRECISIONS[method]
