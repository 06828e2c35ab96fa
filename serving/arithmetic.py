"""The arithmetic of a launch, line by line: each number with its unit, and in words how it came about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .architecture import Architecture
from .choice import Choice, mid_reply_length
from .devices import GIB, Device
from .fit import MAX_DRAFT_DEPTH
from .request import Request
from .speed import (
    COMPUTE_EFFICIENCY,
    MEMORY_EFFICIENCY,
    NEAR_BEST_SHARE,
    STEP_S,
    Speculation,
    Step,
    first_token,
    output_step,
)
from .tensors import active_parameters, count_parameters

__all__ = ["ArithmeticLine", "arithmetic_lines"]


class ArithmeticLine(NamedTuple):
    """One number: what it is, how much, in what unit, and how it came about."""

    what: str
    value: int | float
    unit: str
    how: str


def arithmetic_lines(
    request: Request, device: Device, choice: Choice, deep: Speculation | None
) -> list[ArithmeticLine]:
    """Return the whole arithmetic: the model, the memory, the cache, the times."""
    return [
        *_model(request.model), *_memory(request, device, choice), *_cache(request, choice),
        *_times(request, device, choice), *(_speculation(request, deep) if deep else ()),
    ]  # fmt: skip


def _model(model: Architecture) -> Iterator[ArithmeticLine]:
    counted = count_parameters(model)
    how = f"all tensors of {model.layers} layers, hidden size {model.hidden}, vocabulary {model.vocab}"
    yield ArithmeticLine(
        "parameters", round(counted / 1e9, 3), "billion", how + (", embedding and head in one" if model.tied else "")
    )
    if model.experts:
        how = f"each token meets {model.experts.used} of {model.experts.count} experts; the embedding is looked up"
        yield ArithmeticLine("parameters at work", round(active_parameters(model) / 1e9, 3), "billion", how)


def _memory(request: Request, device: Device, choice: Choice) -> Iterator[ArithmeticLine]:
    one, tokens = choice.budget, choice.budget.rules.batched_tokens
    each = f"of each of {one.gpus} GPUs" if one.gpus > 1 else "of the GPU" if device.gpu else "of the machine"
    yield _gib("memory", one.memory, f"what a process can have {each}: {device.title}")
    yield _gib("usable", one.usable, f"memory x {request.utilization:g}, the part that vLLM may take")
    yield _gib("weights", one.weights, f"{_precision(request, one.precision)}; {_sharing(one.gpus)}")
    if request.draft:
        yield _gib("draft's weights", one.draft_weights, f"{request.draft.name}, 16 bits; {_sharing(one.gpus)}")
    parts = "driver 1, captured graphs 1" + (", communication 0.5" if one.gpus > 1 else "")
    yield _gib(
        "fixed overhead", one.fixed, f"assumed, GiB: {parts}" if device.gpu else "assumed: three processes with PyTorch"
    )
    yield _gib(
        "activations", one.activations, f"assumed: {tokens:,} tokens of a step x what a layer holds of each x 2 bytes"
    )
    yield _gib("scores", one.scores, f"assumed: {one.most} sequences x {request.model.vocab:,} tokens x 4 bytes x 2")
    how = "usable - weights - overhead - activations - scores"
    yield _gib("cache", one.cache, how if device.gpu else how + ", in whole GiB")


def _cache(request: Request, choice: Choice) -> Iterator[ArithmeticLine]:
    one, model = choice.budget, request.model
    kept = "one compressed key and value" if model.latent else "keys and values"
    how = f"{model.layers} layers x {model.cached_per_gpu(one.gpus):,} numbers ({kept}) x {one.kv_bytes} bytes"
    if request.draft:
        how += f", and the draft's ({request.draft.layers} layers)"
    yield ArithmeticLine(
        "cache of a token", round(one.token / 1024, 3), "KiB", how + (" on each GPU" if one.gpus > 1 else "")
    )
    how = f"{request.length:,} tokens in blocks of {one.rules.block}"
    if model.windowed:
        how += f"; {model.windowed} of {model.layers} layers keep a window of {model.window:,} and the steps under way"
    yield ArithmeticLine("cache of a sequence", round(one.sequence / 2**20, 2), "MiB", how)
    yield ArithmeticLine(
        "sequences", one.held, "at once", f"cache / cache of a sequence, all {request.length:,} tokens long"
    )
    yield ArithmeticLine(
        "taken", one.sequences, "at once", f"at most {one.most}: {'as asked' if request.concurrency else 'the default'}"
    )


def _times(request: Request, device: Device, choice: Choice) -> Iterator[ArithmeticLine]:
    one, prompt = choice.budget, request.prompt_tokens
    step = first_token(request, device, one)
    yield _ms("time to first token", step, f"a prompt of {prompt:,} tokens: {_parts(step)}")
    length = mid_reply_length(request)
    for count in dict.fromkeys((1, one.sequences)):
        step = output_step(request.model, device, one, length, count)
        yield _ms(f"time per output token, {count} at once", step, _parts(step))
    yield ArithmeticLine(
        "throughput", round(one.sequences / step.total_s), "tokens/s",
        f"{one.sequences} sequences, a token each per step" + (f"; x {choice.copies} copies" if choice.copies > 1 else ""),
    )  # fmt: skip


def _speculation(request: Request, deep: Speculation) -> Iterator[ArithmeticLine]:
    by = request.draft.name if request.draft else "repeated text"
    assumed = "as given" if request.acceptance is not None else "assumed"
    how = f"the least depth of 1 to {MAX_DRAFT_DEPTH} whose time is within {NEAR_BEST_SHARE:.0%} of the best; drafts by {by}"
    yield ArithmeticLine("tokens drafted", deep.depth, "a step", how)
    how = f"(1 - a^(K+1)) / (1 - a) with K = {deep.depth} and acceptance a = {deep.acceptance:g}, {assumed}"
    yield ArithmeticLine("tokens kept", round(deep.tokens, 2), "a step", how)
    how = "time of a step that checks K + 1 tokens, and of the draft, / tokens kept; 1 sequence"
    yield ArithmeticLine("time per output token, speculating", round(deep.per_token_s * 1e3, 2), "ms", how)
    told = "plain time / speculating time" + ("; it does not pay: leave it out" if deep.gain < 1.05 else "")
    yield ArithmeticLine("speed-up", round(deep.gain, 2), "times", told)


def _gib(what: str, count: int, how: str) -> ArithmeticLine:
    return ArithmeticLine(what, round(count / GIB, 2), "GiB", how)


def _ms(what: str, step: Step, how: str) -> ArithmeticLine:
    return ArithmeticLine(what, round(step.total_s * 1e3, 2), "ms", how)


def _parts(step: Step) -> str:
    """Say the parts of a time, as they add up."""
    told = f"the larger of memory {step.memory_s * 1e3:.2f} ms at {MEMORY_EFFICIENCY:.0%} of its bandwidth and work "
    told += f"{step.compute_s * 1e3:.2f} ms at {COMPUTE_EFFICIENCY:.0%} of peak"
    told += f", + all-reduces {step.link_s * 1e3:.2f} ms" if step.link_s else ""
    return f"{told}, + {step.host_s / STEP_S:.0f} x {STEP_S * 1e3:.1f} ms; {step.bound} decides"


def _precision(request: Request, precision: str) -> str:
    if request.model.stored == "mxfp4":
        return "experts in MXFP4 (4.25 bits), the rest in 16 bits"
    return "matrices in FP8, embeddings and norms in 16 bits" if precision == "fp8" else "2 bytes a parameter"


def _sharing(gpus: int) -> str:
    return f"split over {gpus} GPUs, norms and routers copied" if gpus > 1 else "on one device"
