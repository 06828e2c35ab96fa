"""Estimate the speed of a launch from the roofline of its device, with assumed efficiencies; and its power and price.

The first token costs the work of reading the prompt, the next ones the time to read weights and cache from memory (or
their work, where many sequences share it). Each layer adds its kernels, which cost a few microseconds each however
little they compute, and with tensor parallelism two all-reduces. Queueing is not included.
"""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import Architecture
from .assumptions import COMPUTE_EFFICIENCY, HOST_S, KERNELS, MEMORY_EFFICIENCY, POWER_SHARE_FULL, POWER_SHARE_SINGLE
from .devices import Device
from .memory import MAX_DRAFT_DEPTH, MemoryBudget
from .request import Request
from .tensors import bytes_per_number, compute_expert_share, count_active_parameters, list_tensors

NEAR_BEST_SHARE = 0.02
ASSUMPTIONS = (
    (
        f"matrix work reaches {COMPUTE_EFFICIENCY:.0%} of the device's peak, "
        f"memory {MEMORY_EFFICIENCY:.0%} of its bandwidth"
    ),
    f"each step costs {HOST_S * 1e3:.1f} ms of the host beside the device's work",
    "kernels of a layer are counted from vLLM's models, not traced",
    "routes to experts are even and independent",
    "nobody waits in a queue, and no prefix is cached",
)
HOUR_S, MILLION = 3600.0, 1e6


@dataclass(frozen=True)
class Step:
    """The parts of a time, in seconds; reading and computing overlap, the others are added."""

    compute_s: float
    memory_s: float
    link_s: float
    launch_s: float
    host_s: float
    kernels: int = 0
    all_reduces: int = 0

    @property
    def total_s(self) -> float:
        """Return the whole time."""
        return max(self.compute_s, self.memory_s) + self.link_s + self.launch_s + self.host_s

    @property
    def bound(self) -> str:
        """Return the bottleneck: compute or memory bandwidth."""
        return "compute" if self.compute_s > self.memory_s else "memory bandwidth"


@dataclass(frozen=True)
class Speculation:
    """The depth of speculation, and its expected gain."""

    depth: int
    acceptance: float
    tokens: float
    """Expected tokens of a step: (1 - a^(depth + 1)) / (1 - a)."""
    per_token_s: float
    plain_s: float

    @property
    def gain(self) -> float:
        """Return the speed-up per token."""
        return self.plain_s / self.per_token_s


def estimate_first_token(request: Request, device: Device, budget: MemoryBudget) -> Step:
    """Return the time to read a prompt, in chunks of the tokens of a step."""
    model, prompt = request.model, request.prompt_tokens
    steps = -(-prompt // budget.rules.batched_tokens)
    work = 2.0 * (
        count_active_parameters(model) * prompt - model.vocab * model.hidden * (prompt - 1)
    ) + count_attention_operations(model, prompt)
    read = steps * count_read_bytes(model, budget, prompt / steps)
    kernels = steps * count_kernels(model, budget.precision)
    return Step(
        work / (budget.gpus * _get_peak_rate(device, budget) * COMPUTE_EFFICIENCY),
        read / (device.bandwidth * MEMORY_EFFICIENCY),
        _estimate_all_reduces(model, device, budget.gpus, prompt, steps),
        kernels * device.launch_s,
        steps * HOST_S,
        kernels,
        steps * count_all_reduces(model, budget.gpus),
    )


def estimate_output_step(
    model: Architecture, device: Device, budget: MemoryBudget, length: float, sequences: int = 1, tokens_each: int = 1
) -> Step:
    """Return the time of one step that generates or checks `tokens_each` tokens of each sequence of this length."""
    tokens = sequences * tokens_each
    attended = (model.layers - model.windowed) * length + model.windowed * min(length, model.window or length)
    cached = sequences * attended * model.count_cached_per_gpu(budget.gpus) * budget.kv_bytes
    kernels = count_kernels(model, budget.precision)
    return Step(
        2.0
        * count_active_parameters(model)
        * tokens
        / (budget.gpus * _get_peak_rate(device, budget) * COMPUTE_EFFICIENCY),
        (count_read_bytes(model, budget, tokens) + cached) / (device.bandwidth * MEMORY_EFFICIENCY),
        _estimate_all_reduces(model, device, budget.gpus, tokens, 1),
        kernels * device.launch_s,
        HOST_S,
        kernels,
        count_all_reduces(model, budget.gpus),
    )


def choose_speculation(request: Request, device: Device, budget: MemoryBudget, length: float) -> Speculation | None:
    """Return the least depth whose time per token of one sequence is near the best; None where none is requested.

    Where checking more tokens costs almost nothing, deeper drafts gain almost nothing, and slow down a busy server.
    """
    if request.speculate == "none":
        return None
    plain = estimate_output_step(request.model, device, budget, length).total_s
    draft = estimate_output_step(request.draft, device, budget, length).total_s if request.draft else 0.0
    options = []
    for depth in range(1, MAX_DRAFT_DEPTH + 1):
        tokens = sum(request.accepted**n for n in range(depth + 1))
        step = (
            estimate_output_step(request.model, device, budget, length, tokens_each=depth + 1).total_s + depth * draft
        )
        options.append(Speculation(depth, request.accepted, tokens, step / tokens, plain))
    best = min(one.per_token_s for one in options)
    return next(one for one in options if one.per_token_s <= best * (1 + NEAR_BEST_SHARE))


def count_read_bytes(model: Architecture, budget: MemoryBudget, tokens: float) -> float:
    """Return the bytes of weights that each GPU reads for a step of some tokens."""
    total = 0.0
    for tensor in list_tensors(model):
        if tensor.extra or (tensor.name == "embedding" and not model.tied):
            continue
        numbers = tensor.count_rows(budget.gpus, model.kv_heads) * tensor.columns * tensor.copies
        share = compute_expert_share(model.experts, tokens) if tensor.expert and model.experts else 1.0
        total += numbers * share * float(bytes_per_number(tensor, model, model.stored or budget.precision))
    return total


def count_kernels(model: Architecture, precision: str) -> int:
    """Return the kernels of one step: those of each layer, and those before and after the layers."""
    fp8 = KERNELS.fp8_inputs if "fp8" in (model.stored, precision) else 0
    attention = (KERNELS.latent_attention if model.latent else KERNELS.attention) + fp8
    attention += KERNELS.query_key_norms if model.qk_norm else 0
    kernels = KERNELS.step + model.layers * (attention + model.norms * KERNELS.norm)
    kernels += model.dense_layers * (KERNELS.mlp + fp8)
    if model.experts:
        shared = KERNELS.shared_experts + fp8 if model.experts.shared_width else 0
        kernels += (model.layers - model.dense_layers) * (KERNELS.experts + fp8 + shared)
    return kernels


def count_all_reduces(model: Architecture, gpus: int) -> int:
    """Return the all-reduces of one step: after attention and after the MLP of each layer; none on one GPU."""
    return 2 * model.layers if gpus > 1 else 0


def count_attention_operations(model: Architecture, tokens: int) -> float:
    """Return the operations of causal attention over a prompt, where each token attends to earlier ones."""
    width = 2 * model.head_dim
    if latent := model.latent:
        width = latent.nope + latent.rope + latent.value
    beyond = max(0, tokens - model.window) if model.windowed else 0
    full, bounded = tokens * (tokens + 1) / 2, tokens * (tokens + 1) / 2 - beyond * (beyond + 1) / 2
    return 2.0 * model.heads * width * ((model.layers - model.windowed) * full + model.windowed * bounded)


def _get_peak_rate(device: Device, budget: MemoryBudget) -> float:
    """Return the peak operations a second of one device in the precision of the launch."""
    fast = device.fp8_tflops if budget.precision == "fp8" and device.fp8_tflops else device.tflops
    return fast * 1e12


def _estimate_all_reduces(model: Architecture, device: Device, gpus: int, tokens: int, steps: int) -> float:
    """Return the time of all-reduces, each sending 2 (n - 1) / n of the hidden state over a GPU's link."""
    traffic = 2 * (gpus - 1) / gpus * tokens * model.hidden * 2
    return count_all_reduces(model, gpus) * (steps * device.link_latency_s + traffic / device.link_bandwidth)


@dataclass(frozen=True)
class Economics:
    """What one launch draws and costs at full load; None where a figure it needs is not known."""

    tokens_per_second: float
    """Tokens out a second at full load, with the reading of their prompts."""
    watts_single: float | None
    """Power of all GPUs with one sequence, in W."""
    watts_full: float | None
    """Power of all GPUs at full load, in W."""
    usd_per_hour: float | None
    """Price of all GPUs, in USD an hour."""

    @property
    def joules_per_token(self) -> float | None:
        """Return J for each token out, which is MJ per million tokens."""
        return None if self.watts_full is None else self.watts_full / self.tokens_per_second

    @property
    def usd_per_million(self) -> float | None:
        """Return USD per million tokens out."""
        if self.usd_per_hour is None:
            return None
        return self.usd_per_hour / (self.tokens_per_second * HOUR_S) * MILLION


def estimate_economics(request: Request, device: Device, budget: MemoryBudget, length: float) -> Economics:
    """Return power, energy and price of one launch whose sequences are `length` tokens long in the middle of a reply.

    While its sequences generate a reply each, the launch also reads a prompt for each of them: none is cached.
    """
    step = estimate_output_step(request.model, device, budget, length, budget.sequences).total_s
    prompts = budget.sequences * estimate_first_token(request, device, budget).total_s
    rate = budget.sequences * request.reply_tokens / (prompts + request.reply_tokens * step)
    limit = None if device.watts is None else device.watts * budget.gpus
    price = request.usd_per_hour
    return Economics(
        rate,
        None if limit is None else limit * POWER_SHARE_SINGLE,
        None if limit is None else limit * POWER_SHARE_FULL,
        None if price is None else price * budget.gpus,
    )
