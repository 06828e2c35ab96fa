"""The arithmetic of a plan, line by line: what is counted, what is taken from a maker, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .architecture import INT4_METHODS, Architecture
from .assumptions import COMPUTE_EFFICIENCY, HOST_S, MEMORY_EFFICIENCY, POWER_SHARE_FULL, POWER_SHARE_SINGLE
from .choice import Choice, compute_mid_reply_length
from .devices import GIB, Device
from .memory import MAX_DRAFT_DEPTH
from .request import PLANNED_SHARE, Request
from .speed import NEAR_BEST_SHARE, Speculation, Step, estimate_economics, estimate_first_token, estimate_output_step
from .tensors import count_active_parameters, count_parameters


class ArithmeticLine(NamedTuple):
    """One number of the arithmetic: its name, value, unit and derivation."""

    what: str
    value: int | float
    unit: str
    how: str


def write_arithmetic(
    request: Request, device: Device, choice: Choice, speculation: Speculation | None
) -> list[ArithmeticLine]:
    """Return the whole arithmetic: the model, the memory, the cache, the times, power and price."""
    return [
        *_describe_model(request.model),
        *_describe_memory(request, device, choice),
        *_describe_cache(request, choice),
        *_describe_times(request, device, choice),
        *_describe_economics(request, device, choice),
        *(_describe_speculation(request, speculation) if speculation else ()),
    ]


def _describe_model(model: Architecture) -> Iterator[ArithmeticLine]:
    counted = count_parameters(model)
    how = f"all tensors of {model.layers} layers, hidden size {model.hidden}, vocabulary {model.vocab}"
    yield ArithmeticLine(
        "parameters", round(counted / 1e9, 3), "billion", how + (", embedding and head in one" if model.tied else "")
    )
    if model.experts:
        how = f"each token meets {model.experts.used} of {model.experts.count} experts; the embedding is looked up"
        yield ArithmeticLine("parameters at work", round(count_active_parameters(model) / 1e9, 3), "billion", how)


def _describe_memory(request: Request, device: Device, choice: Choice) -> Iterator[ArithmeticLine]:
    budget, tokens = choice.budget, choice.budget.rules.batched_tokens
    where = f"of each of {budget.gpus} GPUs" if budget.gpus > 1 else "of the GPU" if device.gpu else "of the machine"
    yield _make_gib_line("memory", budget.memory, f"what a process can have {where}: {device.title}")
    yield _make_gib_line("usable", budget.usable, f"memory x {request.utilization:g}, the part that vLLM may take")
    yield _make_gib_line(
        "weights", budget.weights, f"{_describe_precision(request, budget.precision)}; {_describe_sharing(budget.gpus)}"
    )
    if request.draft:
        yield _make_gib_line(
            "draft's weights", budget.draft_weights, f"{request.draft.name}, 16 bits; {_describe_sharing(budget.gpus)}"
        )
    parts = "driver 1, captured graphs 1" + (", communication 0.5" if budget.gpus > 1 else "")
    yield _make_gib_line(
        "fixed overhead",
        budget.fixed,
        f"assumed, GiB: {parts}" if device.gpu else "assumed: three processes with PyTorch",
    )
    yield _make_gib_line(
        "activations",
        budget.activations,
        f"assumed: {tokens:,} tokens of a step x what a layer holds of each x 2 bytes",
    )
    yield _make_gib_line(
        "scores", budget.scores, f"assumed: {budget.most} sequences x {request.model.vocab:,} tokens x 4 bytes x 2"
    )
    how = "usable - weights - overhead - activations - scores"
    yield _make_gib_line("cache", budget.cache, how if device.gpu else how + ", in whole GiB")


def _describe_cache(request: Request, choice: Choice) -> Iterator[ArithmeticLine]:
    budget, model = choice.budget, request.model
    content = "one compressed key and value" if model.latent else "keys and values"
    numbers = model.count_cached_per_gpu(budget.gpus)
    how = f"{model.layers} layers x {numbers:,} numbers ({content}) x {budget.kv_bytes} bytes"
    if request.draft:
        how += f", and the draft's ({request.draft.layers} layers)"
    yield ArithmeticLine(
        "cache of a token", round(budget.token / 1024, 3), "KiB", how + (" on each GPU" if budget.gpus > 1 else "")
    )
    how = f"{request.length:,} tokens in blocks of {budget.rules.block}"
    if model.windowed:
        how += f"; {model.windowed} of {model.layers} layers keep a window of {model.window:,} and the steps under way"
    yield ArithmeticLine("cache of a sequence", round(budget.sequence / 2**20, 2), "MiB", how)
    yield ArithmeticLine(
        "sequences", budget.held, "at once", f"cache / cache of a sequence, all {request.length:,} tokens long"
    )
    how = f"{request.planned_tokens:,} tokens: {_describe_lengths(request)}"
    yield ArithmeticLine("cache of a planned sequence", round(budget.planned / 2**20, 2), "MiB", how)
    most = f"at most {budget.most}: {'as asked' if request.concurrency else 'the default'}"
    yield ArithmeticLine("taken", budget.sequences, "at once", f"cache / cache of a planned sequence, {most}")


def _describe_lengths(request: Request) -> str:
    """Return where the length of a planned sequence is from."""
    if recorded := request.recorded:
        return f"{PLANNED_SHARE:.0%} of the {recorded.calls:,} calls of {recorded.source} are no longer"
    both = f"prompt {request.prompt_tokens:,} and reply {request.reply_tokens:,}"
    return f"{both}, {'as given' if request.lengths_given else 'assumed'}"


def _describe_times(request: Request, device: Device, choice: Choice) -> Iterator[ArithmeticLine]:
    budget, prompt = choice.budget, request.prompt_tokens
    step = estimate_first_token(request, device, budget)
    yield _make_ms_line("time to first token", step, f"a prompt of {prompt:,} tokens: {_describe_parts(step)}")
    length = compute_mid_reply_length(request)
    for count in dict.fromkeys((1, budget.sequences)):
        step = estimate_output_step(request.model, device, budget, length, count)
        yield _make_ms_line(f"time per output token, {count} at once", step, _describe_parts(step))
    yield ArithmeticLine(
        "throughput",
        round(budget.sequences / step.total_s),
        "tokens/s",
        f"{budget.sequences} sequences, a token each per step"
        + (f"; x {choice.copies} copies" if choice.copies > 1 else ""),
    )


def _describe_speculation(request: Request, speculation: Speculation) -> Iterator[ArithmeticLine]:
    by = request.draft.name if request.draft else "repeated text"
    assumed = "as given" if request.acceptance is not None else "assumed"
    how = (
        f"the least depth of 1 to {MAX_DRAFT_DEPTH} whose time is within {NEAR_BEST_SHARE:.0%} of the best; "
        f"drafts by {by}"
    )
    yield ArithmeticLine("tokens drafted", speculation.depth, "a step", how)
    how = (
        f"(1 - a^(K+1)) / (1 - a) with K = {speculation.depth} and acceptance a = {speculation.acceptance:g}, {assumed}"
    )
    yield ArithmeticLine("tokens kept", round(speculation.tokens, 2), "a step", how)
    how = "time of a step that checks K + 1 tokens, and of the draft, / tokens kept; 1 sequence"
    yield ArithmeticLine("time per output token, speculating", round(speculation.per_token_s * 1e3, 2), "ms", how)
    how = "plain time / speculating time" + ("; it does not pay: leave it out" if speculation.gain < 1.05 else "")
    yield ArithmeticLine("speed-up", round(speculation.gain, 2), "times", how)


def _make_gib_line(what: str, count: int, how: str) -> ArithmeticLine:
    return ArithmeticLine(what, round(count / GIB, 2), "GiB", how)


def _make_ms_line(what: str, step: Step, how: str) -> ArithmeticLine:
    return ArithmeticLine(what, round(step.total_s * 1e3, 2), "ms", how)


def _describe_parts(step: Step) -> str:
    """Return the parts of a time in words."""
    words = f"the larger of memory {step.memory_s * 1e3:.2f} ms at {MEMORY_EFFICIENCY:.0%} of its bandwidth and work "
    words += f"{step.compute_s * 1e3:.2f} ms at {COMPUTE_EFFICIENCY:.0%} of peak"
    words += f", + {step.kernels:,} kernels {step.launch_s * 1e3:.2f} ms"
    words += f", + {step.all_reduces:,} all-reduces {step.link_s * 1e3:.2f} ms" if step.all_reduces else ""
    host = f"+ host {step.host_s / HOST_S:.0f} x {HOST_S * 1e3:.1f} ms"
    return f"{words}, {host} (all assumed but the bytes and operations); {step.bound} decides"


def _describe_economics(request: Request, device: Device, choice: Choice) -> Iterator[ArithmeticLine]:
    budget = choice.budget
    found = estimate_economics(request, device, budget, compute_mid_reply_length(request))
    how = f"{budget.sequences} replies of {request.reply_tokens:,} tokens and the reading of their prompts, none cached"
    yield ArithmeticLine("throughput with prompts", round(found.tokens_per_second), "tokens/s", how)
    if device.watts and found.watts_single and found.watts_full and found.joules_per_token:
        limit = f"{budget.gpus} x {device.watts:,.0f} W (the maker's limit)"
        how = f"{limit} x {POWER_SHARE_SINGLE:.0%} with one sequence, assumed; the host is not counted"
        yield ArithmeticLine("power, 1 at once", round(found.watts_single), "W", how)
        how = f"{limit} x {POWER_SHARE_FULL:.0%}, assumed; the host is not counted"
        yield ArithmeticLine("power, full", round(found.watts_full), "W", how)
        how = f"power, full / throughput with prompts: {found.joules_per_token:.3g} J a token out"
        yield ArithmeticLine("energy", round(found.joules_per_token, 3), "MJ per million tokens", how)
    if found.usd_per_million and request.usd_per_hour:
        how = f"{budget.gpus} x {request.usd_per_hour:g} USD an hour, as given, / throughput with prompts"
        yield ArithmeticLine("price", round(found.usd_per_million, 3), "USD per million tokens", how)


def _describe_precision(request: Request, precision: str) -> str:
    if request.model.stored == "mxfp4":
        return "experts in MXFP4 (4.25 bits), the rest in 16 bits"
    if request.model.stored in INT4_METHODS:
        group = f"16 bits of scale and 4 of zero for each {request.model.group}"
        return f"matrices in INT4 ({request.model.stored.upper()}): 4 bits and {group}; the rest in 16 bits"
    return "matrices in FP8, embeddings and norms in 16 bits" if precision == "fp8" else "2 bytes a parameter"


def _describe_sharing(gpus: int) -> str:
    return f"split over {gpus} GPUs, norms and routers copied" if gpus > 1 else "on one device"
