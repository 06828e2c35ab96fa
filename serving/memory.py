"""Compute whether a launch fits: weights, overhead and KV cache in each device's memory.

The overhead is an assumption, and the arithmetic states that: vLLM measures it when it starts. It is the driver's
context, captured graphs, communication buffers, the activations of one full step, and the scores of the vocabulary for
sampling. The cache is counted in blocks, as vLLM allocates it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .architecture import Architecture
from .devices import GIB, Device
from .request import Request
from .tensors import count_bytes_per_gpu

CONTEXT_BYTES, GRAPHS_BYTES, COMMUNICATION_BYTES, PROCESSES_BYTES = GIB, GIB, GIB // 2, 2 * GIB
MAX_DRAFT_DEPTH = 8  # of speculation
MIN_STEP_TOKENS = 512
MLA_BLOCK = 16  # also on a CPU, whose kernel for compressed keys supports no other size
UNEVEN_RATIO = 1.5  # vLLM's own threshold between groups of the smaller and of the larger number of layers


@dataclass(frozen=True)
class MemoryBudget:
    """The memory of a launch, in bytes on each device."""

    gpus: int
    precision: str
    kv_bytes: int
    rules: CacheRules
    memory: int
    usable: int
    weights: int
    draft_weights: int
    fixed: int
    activations: int
    scores: int
    cache: int
    """Bytes left for the cache; negative where weights and overhead alone are too large."""
    token: int
    sequence: int
    """Cache bytes of one sequence of the whole context."""
    planned: int
    """Cache bytes of one sequence of the lengths that are asked."""
    wanted: int
    """How many sequences of the whole context the cache must hold."""
    most: int

    @property
    def sequences(self) -> int:
        """Return how many sequences of the asked lengths the cache holds, up to those that the scheduler takes."""
        return max(0, min(self.most, self.cache // self.planned))

    @property
    def held(self) -> int:
        """Return how many sequences of the whole context the cache holds."""
        return self.cache // self.sequence

    @property
    def short(self) -> int:
        """Return the bytes missing on each device; zero or negative where it fits."""
        return self.sequence * self.wanted - self.cache

    @property
    def fits(self) -> bool:
        """Return whether the launch fits."""
        return self.short <= 0


def choose_batched_tokens(request: Request, device: Device) -> int:
    """Return how many tokens a step processes: the device's default, at most the context, enough for all sequences.

    A CPU processes a whole prompt at once: vLLM 0.32 ends with "CPU Generator does not use offset" where the prompt of
    a request with a seed, as ours are, is split into steps.
    """
    deepest = MAX_DRAFT_DEPTH if request.speculate != "none" else 0
    least = max(MIN_STEP_TOKENS, request.most_sequences * (1 + deepest))
    if not device.gpu:
        return max(least, request.length)
    return max(least, min(device.batched_tokens, request.length))


def compute_memory_budget(request: Request, device: Device, gpus: int, precision: str) -> MemoryBudget:
    """Return the memory budget of a launch on `gpus` devices."""
    kv_bytes = 1 if request.kv_dtype == "fp8" else 2
    block = MLA_BLOCK if request.model.latent else device.block
    rules = CacheRules(kv_bytes, block, choose_batched_tokens(request, device), gpus, 2 if device.gpu else 1)
    models = [request.model, *([request.draft] if request.draft else [])]
    weights, draft = _count_weights(request.model, precision, gpus), 0
    if request.draft:
        draft = _count_weights(request.draft, "bfloat16", gpus)
    usable = int(device.memory * request.utilization)
    fixed = CONTEXT_BYTES + GRAPHS_BYTES + (COMMUNICATION_BYTES if gpus > 1 else 0) if device.gpu else PROCESSES_BYTES
    activations = max(_count_activations(model, rules) for model in models)
    scores = 2 * 4 * request.model.vocab * request.most_sequences
    cache_bytes = usable - weights - draft - fixed - activations - scores
    if not device.gpu:
        cache_bytes = cache_bytes // GIB * GIB  # vLLM takes the CPU's cache in whole GiB
    return MemoryBudget(
        gpus=gpus, precision=precision, kv_bytes=kv_bytes, rules=rules, memory=device.memory, usable=usable,
        weights=weights, draft_weights=draft, fixed=fixed, activations=activations, scores=scores, cache=cache_bytes,
        token=sum(count_token_bytes(model, kv_bytes, gpus) for model in models),
        sequence=sum(count_sequence_bytes(model, request.length, rules) for model in models),
        planned=sum(count_sequence_bytes(model, request.planned_tokens, rules) for model in models),
        wanted=request.concurrency or 1, most=request.most_sequences,
    )  # fmt: skip  # a table


@cache
def _count_weights(model: Architecture, precision: str, gpus: int) -> int:
    return count_bytes_per_gpu(model, model.stored if model.stored == "fp8" else precision, gpus)


def _count_activations(model: Architecture, rules: CacheRules) -> int:
    """Return the bytes of one step's activations: 16 bits of the numbers that a layer holds at once for each token."""
    width = model.intermediate if model.dense_layers else 0
    if model.experts:
        width = max(width, model.experts.used * model.experts.width + model.experts.shared_width)
    inner = (model.heads + 2 * model.kv_heads) * model.head_dim
    if latent := model.latent:
        inner = model.heads * (2 * latent.nope + latent.rope + latent.value)
    numbers = 4 * model.hidden + -(-(inner + 3 * width) // rules.gpus)
    return 2 * rules.batched_tokens * numbers


@dataclass(frozen=True)
class CacheRules:
    """The parameters of the cache's size besides the model."""

    bytes_each: int
    """Bytes of one cached number: 2, or 1 in FP8."""
    block: int
    batched_tokens: int
    gpus: int
    steps: int = 2
    """Steps under way at once: on GPUs vLLM schedules one step while another computes, on a CPU it does not."""


def count_token_bytes(model: Architecture, bytes_each: int, gpus: int = 1) -> int:
    """Return the cache bytes of one token in all layers, on each GPU, before any window has passed it."""
    return model.layers * model.count_cached_per_gpu(gpus) * bytes_each


def count_sequence_bytes(model: Architecture, tokens: int, rules: CacheRules) -> int:
    """Return the cache bytes of one sequence of `tokens` tokens, on each GPU.

    Layers with a window keep `window - 1` tokens and those of the steps under way, at most the sequence, plus a block
    because a window need not begin at a block. Where both kinds of layer exist, vLLM arranges them in groups of equal
    size; the last group of a kind may be padded, and padding takes memory.
    """
    page = model.count_cached_per_gpu(rules.gpus) * rules.bytes_each * rules.block
    full_blocks = -(-tokens // rules.block)
    kept_tokens = min(model.window - 1 + rules.steps * rules.batched_tokens, tokens)
    bounded = -(-kept_tokens // rules.block) + 1
    full = model.layers - model.windowed
    if not model.windowed:
        return full * full_blocks * page
    if not full:
        return model.windowed * bounded * page
    few, many = sorted((full, model.windowed))
    size = many if many < UNEVEN_RATIO * few else few
    groups = -(-full // size) * full_blocks + -(-model.windowed // size) * bounded
    return groups * size * page
