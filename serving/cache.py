"""The KV cache: bytes of a token, and of a whole sequence, as vLLM deals them out in blocks."""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import Architecture

__all__ = ["CacheRules", "sequence_bytes", "token_bytes"]

UNEVEN_RATIO = 1.5  # vLLM's own threshold between dealing out the smaller and the larger number of layers


@dataclass(frozen=True)
class CacheRules:
    """What the size of the cache hangs on besides the model."""

    bytes_each: int
    """Of one cached number: 2, or 1 in FP8."""
    block: int
    batched_tokens: int
    gpus: int
    steps: int = 2
    """Steps under way at once: on GPUs vLLM schedules one while another computes, on a CPU it does not."""


def token_bytes(model: Architecture, bytes_each: int, gpus: int = 1) -> int:
    """Return the bytes that one token takes in all layers, on each GPU, as long as no window has passed over it."""
    return model.layers * model.cached_per_gpu(gpus) * bytes_each


def sequence_bytes(model: Architecture, tokens: int, rules: CacheRules) -> int:
    """Return the bytes of one sequence of so many tokens, on each GPU.

    Layers with a window keep `window - 1` tokens and those of the steps under way, never more than the sequence, plus a
    block since a window need not begin where a block does. Where both kinds of layer are there, vLLM deals them out in
    groups of equal size; the last group of a kind may be padded, and padding takes memory.
    """
    page = model.cached_per_gpu(rules.gpus) * rules.bytes_each * rules.block
    whole = -(-tokens // rules.block)
    held = min(model.window - 1 + rules.steps * rules.batched_tokens, tokens)
    bounded = -(-held // rules.block) + 1
    full = model.layers - model.windowed
    if not model.windowed:
        return full * whole * page
    if not full:
        return model.windowed * bounded * page
    few, many = sorted((full, model.windowed))
    size = many if many < UNEVEN_RATIO * few else few
    groups = -(-full // size) * whole + -(-model.windowed // size) * bounded
    return groups * size * page
