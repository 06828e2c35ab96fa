"""A plan: the launch of a server of models, with what it rests on, as one file."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ..ledger import SettingsError
from ..ledger.files import QuotingDumper, parse_text, read_given_text
from ..router import PlanUnreadable
from .arithmetic import arithmetic_lines
from .choice import choose_launch, mid_reply_length
from .devices import GIB, Device
from .fit import MemoryBudget
from .request import Request
from .speed import ASSUMPTIONS, Speculation, first_token, output_step, speculation

__all__ = ["ServingPlan", "arguments", "dump_plan", "make_plan", "read_plan"]

PLAN_VERSION = 1
FLAG_NAME, VARIABLE_NAME = re.compile(r"[a-z][a-z0-9-]*"), re.compile(r"[A-Z][A-Z0-9_]*")
SECRET_NAME = re.compile(r"(TOKEN|SECRET|PASSWORD|(^|_)KEY)$")
WRITE_HINT = "Write one with: alphaloom models plan ... --out PLAN"
NOT_ONE_KEY = "it has not one of a plan's keys"
PRIVATE_VARIABLES = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}


class _StrictPlan(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlannedNumber(_StrictPlan):
    """One number of the arithmetic."""

    what: str
    value: int | float
    unit: str
    how: str


class Placed(_StrictPlan):
    """The device, and how many of it."""

    name: str
    title: str
    count: int = Field(ge=1)
    copies: int = Field(1, ge=1)
    memory_gib: float
    link: str
    accelerator: str = ""


class ServedModel(_StrictPlan):
    """The model, and where its weights are."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    source: str
    family: str
    draft: str | None = None
    note: str = ""


class ServingPlan(_StrictPlan):
    """All that starting, describing and explaining a server takes; no secret is in it."""

    version: Literal[1] = 1
    model: ServedModel
    device: Placed
    why: str
    flags: dict[str, Any]
    environment: dict[str, str]
    arithmetic: list[PlannedNumber]
    predictions: dict[str, int | float | str]
    assumptions: list[str]

    @field_validator("flags")
    @classmethod
    def _flags(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, each in value.items():
            if FLAG_NAME.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no flag such as max-model-len")
            if name in ("host", "port", "api-key", "hf-token"):
                raise ValueError(f"{name} does not belong into a plan; it is said when the server is started")
            if not isinstance(each, bool | int | float | str | dict):
                raise ValueError(f"{name} must be a number, a text, true, false or a mapping")  # noqa: TRY004 - pydantic's
        return value

    @field_validator("environment")
    @classmethod
    def _environment(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if VARIABLE_NAME.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no name of a variable")
            if SECRET_NAME.search(name):
                raise ValueError(f"{name} names a secret; secrets stay in the environment of whoever starts the server")
        return value


def make_plan(request: Request, device: Device) -> ServingPlan:
    """Return the plan of a launch that fits, or refuse with numbers."""
    choice = choose_launch(request, device)
    deep = speculation(request, device, choice.budget, mid_reply_length(request))
    model, one = request.model, choice.budget
    return ServingPlan(
        model=ServedModel(
            name=re.sub(r"[^A-Za-z0-9._-]", "-", model.name).lstrip("._-") or "model", source=model.source,
            family=model.kind, draft=request.draft.source if request.draft else None,
            note=f"Not counted: {model.unseen}." if model.unseen else "",
        ),
        device=Placed(
            name=device.name, title=device.title, count=one.gpus, copies=choice.copies,
            memory_gib=round(device.memory / GIB, 2), link=device.link, accelerator=device.accelerator,
        ),
        why=_why(request, choice.why, one), flags=_flags(request, device, one, deep), environment=_environment(device, one),
        arithmetic=[PlannedNumber(**each._asdict()) for each in arithmetic_lines(request, device, choice, deep)],
        predictions=_predictions(request, device, one, deep), assumptions=_assumptions(request, device, one.gpus),
    )  # fmt: skip


def _why(request: Request, why: str, one: MemoryBudget) -> str:
    if one.precision == "fp8" and request.dtype == "auto" and not request.model.stored:
        why += "; FP8, because 16 bits do not fit: answers differ slightly from the model's own"
    return why


def _flags(request: Request, device: Device, one: MemoryBudget, deep: Speculation | None) -> dict[str, Any]:
    """Return vLLM's flags, by their names."""
    flags: dict[str, Any] = {"model": request.model.source, "served-model-name": request.model.name}
    flags["dtype"] = request.dtype if request.dtype in ("bfloat16", "float16") else "bfloat16"
    if one.precision == "fp8" and not request.model.stored:
        flags["quantization"] = "fp8"
    if request.kv_dtype == "fp8":
        flags["kv-cache-dtype"] = "fp8"
    flags |= {"tensor-parallel-size": one.gpus, "max-model-len": request.length, "max-num-seqs": one.sequences}
    flags["max-num-batched-tokens"] = one.rules.batched_tokens
    if device.gpu:
        flags["gpu-memory-utilization"] = request.utilization
    flags |= {"enable-prefix-caching": True, "enable-chunked-prefill": device.gpu}  # see `batched_tokens`
    flags["structured-outputs-config"] = {"backend": "xgrammar"}
    if deep:
        flags["speculative-config"] = _speculative_config(request, one, deep)
    return flags


def _speculative_config(request: Request, one: MemoryBudget, deep: Speculation) -> dict[str, Any]:
    if request.draft is None:
        lookup = {"prompt_lookup_max": 4, "prompt_lookup_min": 2}
        return {"method": "ngram", "num_speculative_tokens": deep.depth, **lookup}
    return {
        "method": "draft_model", "model": request.draft.source, "num_speculative_tokens": deep.depth,
        "draft_tensor_parallel_size": one.gpus,
    }  # fmt: skip


def _environment(device: Device, one: MemoryBudget) -> dict[str, str]:
    """Return the variables of the server: it reports to nobody, and fetches no weights."""
    return PRIVATE_VARIABLES | ({} if device.gpu else {"VLLM_CPU_KVCACHE_SPACE": str(one.cache // GIB)})


def _predictions(
    request: Request, device: Device, one: MemoryBudget, deep: Speculation | None
) -> dict[str, int | float | str]:
    length = mid_reply_length(request)
    single, full = (output_step(request.model, device, one, length, count) for count in (1, one.sequences))
    told: dict[str, int | float | str] = {
        "prompt_tokens": request.prompt_tokens, "reply_tokens": request.reply_tokens, "sequences": one.sequences,
        "time_to_first_token_ms": round(first_token(request, device, one).total_s * 1e3, 2),
        "per_token_ms": round(single.total_s * 1e3, 2), "per_token_full_ms": round(full.total_s * 1e3, 2),
        "bound": single.bound, "bound_full": full.bound, "tokens_per_second_full": round(one.sequences / full.total_s),
    }  # fmt: skip
    if deep:
        told |= {
            "speculative_tokens": deep.depth, "acceptance": deep.acceptance, "tokens_per_step": round(deep.tokens, 3),
            "per_token_speculating_ms": round(deep.per_token_s * 1e3, 2), "speed_up": round(deep.gain, 3),
        }  # fmt: skip
    return told


def _assumptions(request: Request, device: Device, gpus: int) -> list[str]:
    told = [*ASSUMPTIONS, "overhead, activations and scores are estimates; vLLM measures them when it starts"]
    if gpus > 1:
        told.append(f"an all-reduce over {device.link} takes at least {device.link_latency_s * 1e6:.0f} microseconds")
    if not device.gpu:
        rates = f"{device.tflops:g} TFLOPS and {device.bandwidth / 1e9:g} GB/s"
        told.append(f"the processor's {rates} are a guess: measure, and take the times as an order of magnitude")
    if request.speculate != "none" and request.acceptance is None:
        told.append(f"a drafted token is accepted with a chance of {request.accepted:g}: measure it, then --acceptance")
    return told


def arguments(plan: ServingPlan, **changes: Any) -> list[str]:
    """Return the flags as arguments; what is false is left out or said to be off, what is a mapping becomes JSON."""
    words: list[str] = []
    for name, value in (plan.flags | changes).items():
        if value is False:
            words += [f"--no-{name}"] if name.startswith("enable-") else []  # what vLLM does of itself otherwise
            continue
        words.append(f"--{name}")
        if value is not True:
            words.append(json.dumps(value) if isinstance(value, dict) else str(value))
    return words


def dump_plan(plan: ServingPlan) -> str:
    """Return a plan as YAML, with the command at its head."""
    command = " ".join(shlex.join(["python", "-m", "vllm.entrypoints.openai.api_server", *arguments(plan)]).split())
    body = yaml.dump(plan.model_dump(mode="json"), Dumper=QuotingDumper, sort_keys=False, allow_unicode=True, width=118)
    return f"# What it starts: {command}\n# Start it with: alphaloom models serve THIS_FILE\n{body}"


def read_plan(file: Path) -> ServingPlan:
    """Read a plan, or say what is wrong with it."""
    try:
        text = parse_text(read_given_text(file), str(file))
    except OSError as error:
        raise PlanUnreadable(f"{file} cannot be read: {error.strerror or error}", field="PLAN") from None
    except (UnicodeDecodeError, SettingsError) as error:
        raise PlanUnreadable(f"{file} is no YAML: {str(error).splitlines()[0]}", field="PLAN") from None
    if text.mistakes:
        raise PlanUnreadable(f"{file}: {text.mistakes[0]}", field="PLAN")
    held = text.value
    if not isinstance(held, dict) or not held.keys() & ServingPlan.model_fields.keys():
        named = isinstance(held, dict) and "models" in held
        raise PlanUnreadable(
            f"{file} is no plan: {'it names models, as a router.yaml or a campaign file does' if named else NOT_ONE_KEY}",
            field="PLAN", allowed=list(ServingPlan.model_fields), hint=WRITE_HINT,
        )  # fmt: skip
    try:
        return ServingPlan.model_validate(held)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "PLAN"
        more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        said = first["msg"].removeprefix("Value error, ")
        raise PlanUnreadable(
            f"{file} is no plan: {place}: {said}{more}",
            field=place,
            hint=WRITE_HINT,
        ) from None
