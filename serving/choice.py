"""Choose precision and tensor parallelism of a launch; where nothing fits, report the shortfall and alternatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .architecture import INT4_METHODS, assume_int4
from .devices import DEVICES, GIB, Device
from .errors import DeviceLacks, DoesNotFit, ServingError
from .memory import MemoryBudget, compute_memory_budget
from .request import MAX_GPUS, Request
from .speed import estimate_output_step

MAX_TIME_RATIO = 0.75  # more GPUs over NVLink must reduce the time of an output token to this share
FEW_SEQUENCES = 4  # sequences at once, below which the plan states what more GPUs would hold
MIN_HINT_CONTEXT = 256  # no smaller context is worth a hint


@dataclass(frozen=True)
class Choice:
    """The chosen budget with its reason, and the budgets of the other numbers of GPUs."""

    budget: MemoryBudget
    why: str
    tried: tuple[MemoryBudget, ...]
    copies: int = 1
    """Number of launches like this one that the GPUs hold."""


def choose_launch(request: Request, device: Device) -> Choice:
    """Return the launch that fits.

    Raises
    ------
    DeviceLacks
        The device cannot compute in the requested precision.
    DoesNotFit
        No precision and number of GPUs fits; the message has the numbers.
    """
    budgets: list[MemoryBudget] = []
    for precision in list_precisions(request, device):
        options = [compute_memory_budget(request, device, gpus, precision) for gpus in list_gpu_counts(request, device)]
        fitting = [one for one in options if one.fits]
        if fitting:
            return _pick_gpus(request, device, options, fitting)
        budgets += options
    raise _make_refusal(request, device, budgets)


def list_precisions(request: Request, device: Device) -> tuple[str, ...]:
    """Return the precisions to try in order; the first that fits is taken."""
    stored, dtype = request.model.stored, request.dtype
    fp8 = device.fp8_tflops is not None
    drafted = request.draft.stored if request.draft else ""
    if not fp8 and "fp8" in (stored, dtype, request.kv_dtype, drafted):
        is_stored = "fp8" in (stored, drafted)
        what = "the weights come in FP8" if is_stored else "FP8 was asked for"
        field = "--gpu" if is_stored else "--dtype" if dtype == "fp8" else "--kv-dtype"
        raise DeviceLacks(
            f"{what}, and {device.title} computes in no FP8",
            field=field,
            allowed=f"FP8 on {', '.join(name for name, one in DEVICES.items() if one.fp8_tflops)}",
            hint="Take one of these GPUs." if is_stored else "Leave it at auto, or take one of these GPUs.",
        )
    if stored == "mxfp4" and not device.gpu:
        raise DeviceLacks("the weights come in MXFP4, which no CPU serves", field="--gpu", got=device.name)
    if stored == "mxfp4" and dtype == "fp8":
        raise ServingError("the weights come in MXFP4, smaller than FP8", field="--dtype", got=dtype, allowed="auto")
    if stored in INT4_METHODS and dtype == "fp8":
        raise ServingError("the weights come in INT4, smaller than FP8", field="--dtype", got=dtype, allowed="auto")
    if stored == "fp8" or stored in INT4_METHODS:
        return (stored,)
    if dtype != "auto":
        return (dtype,)
    return ("bfloat16", "fp8") if fp8 and not stored else ("bfloat16",)


def list_gpu_counts(request: Request, device: Device) -> list[int]:
    """Return the numbers of GPUs over which the model, and the draft, can be split."""
    models = [request.model, *([request.draft] if request.draft else [])]
    most = (request.gpus or MAX_GPUS) if device.gpu else 1
    return [gpus for gpus in range(1, most + 1) if all(model.can_split(gpus) for model in models)]


def compute_mid_reply_length(request: Request) -> float:
    """Return the length of a sequence in the middle of its reply."""
    return request.prompt_tokens + request.reply_tokens / 2


def _pick_gpus(request: Request, device: Device, options: list[MemoryBudget], fitting: list[MemoryBudget]) -> Choice:
    """Take the fewest GPUs that fit; more over NVLink where they are available and each step up is worthwhile."""
    budget = fitting[0]
    offered = request.gpus if request.gpus and device.gpu else budget.gpus
    bits = "" if request.model.stored or budget.precision == "fp8" else " in 16 bits"
    why = f"the fewest GPUs that fit{bits}: {budget.gpus}" if device.gpu else "one processor"
    if request.gpus and device.nvlink:
        for one in fitting[1:]:
            if _estimate_token_seconds(request, device, one) <= MAX_TIME_RATIO * _estimate_token_seconds(
                request, device, budget
            ):
                budget = one
        if budget.gpus > fitting[0].gpus:
            why = (
                f"{device.link} is fast: {budget.gpus} GPUs, "
                "since each step up saves a quarter of the time per output token"
            )
    elif budget.gpus < offered:
        why += f"; over {device.link} all-reduces are slow, so further GPUs are better used for copies"
    if idle := offered % budget.gpus:
        why += f"; {idle} of the {offered} GPUs {'is' if idle == 1 else 'are'} not used"
    return Choice(budget, why + _describe_narrow(request, device, budget), tuple(options), offered // budget.gpus)


def _describe_narrow(request: Request, device: Device, budget: MemoryBudget) -> str:
    """Return a note on a launch that holds few sequences, and what more GPUs would hold; empty where none is due."""
    if budget.held >= FEW_SEQUENCES or request.concurrency or not device.gpu:
        return ""
    noun = "sequence" if budget.held == 1 else "sequences"
    note = f"; it holds {budget.held} {noun} of {request.length:,} tokens at once"
    wide = [n for n in list_gpu_counts(replace(request, gpus=MAX_GPUS), device) if n > budget.gpus]
    larger = [compute_memory_budget(request, device, gpus, budget.precision) for gpus in wide]
    best = next((one for one in larger if one.held >= FEW_SEQUENCES), larger[-1] if larger else None)
    return f"{note}, {best.gpus} GPUs would hold {best.held}" if best else note


def _estimate_token_seconds(request: Request, device: Device, one: MemoryBudget) -> float:
    return estimate_output_step(request.model, device, one, compute_mid_reply_length(request)).total_s


def _make_refusal(request: Request, device: Device, budgets: list[MemoryBudget]) -> DoesNotFit:
    best = min(budgets, key=lambda one: one.short)
    needed = best.usable + best.short
    advice = list(_list_advice(request, device)) or [*_list_other_gpus(request)]
    advice += ["--dtype awq (another checkpoint, in INT4)"] if _fits_int4(request, device) else []
    advice = advice or ["nothing planned here holds it"]
    where = f"{best.gpus} x {device.title}" if device.gpu else device.title
    return DoesNotFit(
        f"{request.model.name} does not fit on {where} in {best.precision}: it takes {needed / GIB:.2f} GiB of each, "
        f"of which {best.usable / GIB:.2f} GiB can be used; {best.short / GIB:.2f} GiB are lacking "
        f"(weights {best.weights / GIB:.2f}, overhead {(best.fixed + best.activations + best.scores) / GIB:.2f}, "
        f"cache for {best.wanted} of {request.length:,} tokens {best.sequence * best.wanted / GIB:.2f})",
        field="--gpu",
        got=device.name,
        hint="What would fit: " + "; ".join(advice) + ".",
    )


def _list_advice(request: Request, device: Device) -> Iterator[str]:
    """Yield the single changes with which the launch would fit."""
    if (context := _find_longest_context(request, device)) is not None:
        yield f"--context {context}"
    if request.concurrency and (count := _find_max_sequences(request, device)):
        yield f"--concurrency {count}"
    wide = not request.model.stored and request.dtype in ("bfloat16", "float16")
    if device.fp8_tflops and wide and _fits(replace(request, dtype="fp8"), device):
        yield "--dtype fp8"
    if device.fp8_tflops and request.kv_dtype == "auto" and _fits(replace(request, kv_dtype="fp8"), device):
        yield "--kv-dtype fp8"
    if device.gpu and request.gpus and request.gpus < MAX_GPUS:
        enough = [n for n in range(request.gpus + 1, MAX_GPUS + 1) if _fits(replace(request, gpus=n), device)]
        if enough:
            yield f"--gpus {enough[0]}"


def _fits(request: Request, device: Device) -> bool:
    return _find_fitting_precision(request, device) is not None


def _fits_int4(request: Request, device: Device) -> bool:
    """Return whether a checkpoint of the same model in INT4 would fit."""
    if request.model.stored or request.dtype == "fp8":
        return False
    try:
        return _fits(replace(request, model=assume_int4(request.model, "awq")), device)
    except ServingError:  # widths that INT4 does not divide, or a cache in FP8 where there is none
        return False


def _find_fitting_precision(request: Request, device: Device) -> str | None:
    """Return the first precision in which the launch fits; None where it fits in none."""
    for precision in list_precisions(request, device):
        if any(
            compute_memory_budget(request, device, gpus, precision).fits for gpus in list_gpu_counts(request, device)
        ):
            return precision
    return None


def _find_longest_context(request: Request, device: Device) -> int | None:
    """Return the longest context that fits, in steps of 16 tokens; None below `MIN_HINT_CONTEXT`."""
    low, high = 0, request.length // 16
    while low < high:
        middle = (low + high + 1) // 2
        shorter = replace(request, context=middle * 16, prompt_tokens=1, reply_tokens=1, recorded=None)
        low, high = (middle, high) if _fits(shorter, device) else (low, middle - 1)
    return low * 16 if low * 16 >= MIN_HINT_CONTEXT else None


def _find_max_sequences(request: Request, device: Device) -> int:
    """Return the largest number of sequences at once that fits; 0 where none does."""
    fitting = (
        n for n in range((request.concurrency or 1) - 1, 0, -1) if _fits(replace(request, concurrency=n), device)
    )
    return next(fitting, 0)


def _list_other_gpus(request: Request) -> Iterator[str]:
    """Yield the other GPUs that would hold the model, with their least number, and whether that needs FP8."""
    for other in DEVICES.values():
        try:
            gpus, precision = _find_least_gpus(request, other)
        except DeviceLacks:
            continue
        if precision:
            smaller = precision == "fp8" and request.dtype == "auto" and not request.model.stored
            yield f"--gpu {other.name} --gpus {gpus}{' (FP8)' if smaller else ''}"


def _find_least_gpus(request: Request, device: Device) -> tuple[int, str | None]:
    """Return the least number of GPUs of a kind that hold a request, and the precision; none without a precision."""
    for gpus in range(1, MAX_GPUS + 1) if device.gpu else ():
        if precision := _find_fitting_precision(replace(request, gpus=gpus), device):
            return gpus, precision
    return 0, None
