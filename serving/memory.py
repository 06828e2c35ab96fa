"""Whether a launch fits: what weights, overhead and KV cache take of each device's memory.

The overhead is an assumption, and the arithmetic says so: vLLM measures it when it starts. It is the driver's context,
captured graphs, communication buffers, the activations of one full step, and the scores of the vocabulary for sampling.
The cache is counted in blocks, as vLLM allocates it.
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
MLA_BLOCK = 16  # also on a CPU, whose kernel for compressed keys knows no other
UNEVEN_RATIO = 1.5  # vLLM's own threshold between dealing out the smaller and the larger number of layers


@dataclass(frozen=True)
class MemoryBudget:
    """Bytes on each device, and what follows from them."""

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
    """What is left for the cache; below zero where the weights alone are too large."""
    token: int
    sequence: int
    """Of one sequence of the whole context."""
    wanted: int
    """How many such sequences must be held."""
    most: int

    @property
    def sequences(self) -> int:
        """Return how many sequences of the whole context the cache holds, up to what the scheduler is to take."""
        return max(0, min(self.most, self.held))

    @property
    def held(self) -> int:
        """Return how many sequences of the whole context the cache holds."""
        return self.cache // self.sequence

    @property
    def short(self) -> int:
        """Return the bytes that are lacking on each device; zero or less where it fits."""
        return self.sequence * self.wanted - self.cache

    @property
    def fits(self) -> bool:
        """Tell whether it fits."""
        return self.short <= 0


def choose_batched_tokens(request: Request, device: Device) -> int:
    """Return how many tokens a step takes in: the device's default, no more than the context, enough for all sequences.

    A CPU takes in a whole prompt at once: vLLM 0.32 ends with "CPU Generator does not use offset" where a request with a
    seed, as ours are, has its prompt cut into steps.
    """
    deepest = MAX_DRAFT_DEPTH if request.speculate != "none" else 0
    least = max(MIN_STEP_TOKENS, request.most_sequences * (1 + deepest))
    if not device.gpu:
        return max(least, request.length)
    return max(least, min(device.batched_tokens, request.length))


def compute_memory_budget(request: Request, device: Device, gpus: int, precision: str) -> MemoryBudget:
    """Return what a launch on so many devices takes of each."""
    kv_bytes = 1 if request.kv_dtype == "fp8" else 2
    block = MLA_BLOCK if request.model.latent else device.block
    rules = CacheRules(kv_bytes, block, choose_batched_tokens(request, device), gpus, 2 if device.gpu else 1)
    models = [request.model, *([request.draft] if request.draft else [])]
    weights, draft = _weights(request.model, precision, gpus), 0
    if request.draft:
        draft = _weights(request.draft, "bfloat16", gpus)
    usable = int(device.memory * request.utilization)
    fixed = CONTEXT_BYTES + GRAPHS_BYTES + (COMMUNICATION_BYTES if gpus > 1 else 0) if device.gpu else PROCESSES_BYTES
    activations = max(_activations(each, rules) for each in models)
    scores = 2 * 4 * request.model.vocab * request.most_sequences
    left = usable - weights - draft - fixed - activations - scores
    if not device.gpu:
        left = left // GIB * GIB  # the CPU's cache is given to vLLM in whole GiB
    return MemoryBudget(
        gpus=gpus, precision=precision, kv_bytes=kv_bytes, rules=rules, memory=device.memory, usable=usable, weights=weights,
        draft_weights=draft, fixed=fixed, activations=activations, scores=scores, cache=left,
        token=sum(count_token_bytes(each, kv_bytes, gpus) for each in models),
        sequence=sum(count_sequence_bytes(each, request.length, rules) for each in models),
        wanted=request.concurrency or 1, most=request.most_sequences,
    )  # fmt: skip


@cache
def _weights(model: Architecture, precision: str, gpus: int) -> int:
    return count_bytes_per_gpu(model, model.stored if model.stored == "fp8" else precision, gpus)


def _activations(model: Architecture, rules: CacheRules) -> int:
    """Return the bytes of one step's activations: 16 bits of what a layer holds at once of each token."""
    width = model.intermediate if model.dense_layers else 0
    if model.experts:
        width = max(width, model.experts.used * model.experts.width + model.experts.shared_width)
    inner = (model.heads + 2 * model.kv_heads) * model.head_dim
    if latent := model.latent:
        inner = model.heads * (2 * latent.nope + latent.rope + latent.value)
    each = 4 * model.hidden + -(-(inner + 3 * width) // rules.gpus)
    return 2 * rules.batched_tokens * each


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


def count_token_bytes(model: Architecture, bytes_each: int, gpus: int = 1) -> int:
    """Return the bytes that one token takes in all layers, on each GPU, as long as no window has passed over it."""
    return model.layers * model.cached_per_gpu(gpus) * bytes_each


def count_sequence_bytes(model: Architecture, tokens: int, rules: CacheRules) -> int:
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
