"""A plan: the launch of a model server with its arithmetic, line by line, as one file."""

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
from .architecture import INT4_METHODS
from .arithmetic import write_arithmetic
from .assumptions import POWER_SHARE_FULL, POWER_SHARE_SINGLE
from .choice import choose_launch, compute_mid_reply_length
from .devices import GIB, Device, describe_confidential
from .errors import ServingError
from .memory import MemoryBudget
from .request import Request
from .speed import (
    ASSUMPTIONS,
    Economics,
    Speculation,
    choose_speculation,
    estimate_economics,
    estimate_first_token,
    estimate_output_step,
)

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


class PlannedDevice(_StrictPlan):
    """The device, and the number of devices and copies."""

    name: str
    title: str
    count: int = Field(ge=1)
    copies: int = Field(1, ge=1)
    memory_gib: float
    link: str
    accelerator: str = ""
    confidential: str = ""


class ServedModel(_StrictPlan):
    """The model, and where its weights are."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    source: str
    family: str
    draft: str | None = None
    note: str = ""


class ServingPlan(_StrictPlan):
    """The data to start, describe and explain a server; it holds no secret."""

    version: Literal[1] = 1
    model: ServedModel
    device: PlannedDevice
    why: str
    flags: dict[str, Any]
    environment: dict[str, str]
    arithmetic: list[PlannedNumber]
    predictions: dict[str, int | float | str]
    assumptions: list[str]

    @field_validator("flags")
    @classmethod
    def _check_flags(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, setting in value.items():
            if FLAG_NAME.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no flag such as max-model-len")
            if name in ("host", "port", "api-key", "hf-token"):
                raise ValueError(f"{name} does not belong into a plan; it is said when the server is started")
            if not isinstance(setting, bool | int | float | str | dict):
                raise ValueError(f"{name} must be a number, a text, true, false or a mapping")  # noqa: TRY004 - pydantic's
        return value

    @field_validator("environment")
    @classmethod
    def _check_environment(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if VARIABLE_NAME.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no name of a variable")
            if SECRET_NAME.search(name):
                raise ValueError(f"{name} names a secret; secrets stay in the environment of whoever starts the server")
        return value


def make_plan(request: Request, device: Device) -> ServingPlan:
    """Return the plan of a launch that fits.

    Raises
    ------
    DeviceLacks, DoesNotFit
        As `choose_launch`.
    """
    choice = choose_launch(request, device)
    speculation = choose_speculation(request, device, choice.budget, compute_mid_reply_length(request))
    model, budget = request.model, choice.budget
    return ServingPlan(
        model=ServedModel(
            name=re.sub(r"[^A-Za-z0-9._-]", "-", model.name).lstrip("._-") or "model", source=model.source,
            family=model.kind, draft=request.draft.source if request.draft else None,
            note=_describe_source(request),
        ),
        device=PlannedDevice(
            name=device.name, title=device.title, count=budget.gpus, copies=choice.copies,
            memory_gib=round(device.memory / GIB, 2), link=device.link, accelerator=device.accelerator,
            confidential=describe_confidential(device, budget.gpus),
        ),
        why=_explain_choice(request, choice.why, budget), flags=_build_flags(request, device, budget, speculation),
        environment=_build_environment(device, budget),
        arithmetic=[
            PlannedNumber(**line._asdict()) for line in write_arithmetic(request, device, choice, speculation)
        ],
        predictions=_predict(request, device, budget, speculation),
        assumptions=_list_assumptions(request, device, budget.gpus),
    )  # fmt: skip  # a table


def _describe_source(request: Request) -> str:
    """Return what a person must know of the weights, in sentences."""
    model, words = request.model, []
    if model.unseen:
        words.append(f"Not counted: {model.unseen}.")
    if model.assumed_int4:
        words.append(
            f"{model.source} holds 16 bits: name a checkpoint in {model.stored.upper()} with --source, or plan from "
            "its config.json; --quantization makes vLLM refuse any other"
        )
    elif model.stored in INT4_METHODS:
        words.append("vLLM reads the quantisation from the checkpoint, so no --quantization is set")
    return " ".join(one if one.endswith(".") else f"{one}." for one in words)


def _explain_choice(request: Request, why: str, budget: MemoryBudget) -> str:
    if budget.precision == "fp8" and request.dtype == "auto" and not request.model.stored:
        why += "; FP8, because 16 bits do not fit: answers differ slightly from the model's own"
    return why


def _build_flags(
    request: Request, device: Device, budget: MemoryBudget, speculation: Speculation | None
) -> dict[str, Any]:
    """Return vLLM's flags, by their names."""
    flags: dict[str, Any] = {"model": request.model.source, "served-model-name": request.model.name}
    flags["dtype"] = request.dtype if request.dtype in ("bfloat16", "float16") else "bfloat16"
    if budget.precision == "fp8" and not request.model.stored:
        flags["quantization"] = "fp8"
    if request.model.assumed_int4:
        flags["quantization"] = request.model.stored
    if request.kv_dtype == "fp8":
        flags["kv-cache-dtype"] = "fp8"
    flags |= {"tensor-parallel-size": budget.gpus, "max-model-len": request.length, "max-num-seqs": budget.sequences}
    flags["max-num-batched-tokens"] = budget.rules.batched_tokens
    if device.gpu:
        flags["gpu-memory-utilization"] = request.utilization
    flags |= {"enable-prefix-caching": True, "enable-chunked-prefill": device.gpu}  # see `choose_batched_tokens`
    flags["structured-outputs-config"] = {"backend": "xgrammar"}
    if speculation:
        flags["speculative-config"] = _build_speculative_config(request, budget, speculation)
    return flags


def _build_speculative_config(request: Request, budget: MemoryBudget, speculation: Speculation) -> dict[str, Any]:
    if request.draft is None:
        lookup = {"prompt_lookup_max": 4, "prompt_lookup_min": 2}
        return {"method": "ngram", "num_speculative_tokens": speculation.depth, **lookup}
    return {
        "method": "draft_model",
        "model": request.draft.source,
        "num_speculative_tokens": speculation.depth,
        "draft_tensor_parallel_size": budget.gpus,
    }


def _build_environment(device: Device, budget: MemoryBudget) -> dict[str, str]:
    """Return the variables of the server: it sends no usage statistics and fetches no weights."""
    return PRIVATE_VARIABLES | ({} if device.gpu else {"VLLM_CPU_KVCACHE_SPACE": str(budget.cache // GIB)})


def _predict(
    request: Request, device: Device, budget: MemoryBudget, speculation: Speculation | None
) -> dict[str, int | float | str]:
    length = compute_mid_reply_length(request)
    single, full = (
        estimate_output_step(request.model, device, budget, length, count) for count in (1, budget.sequences)
    )
    predictions: dict[str, int | float | str] = {
        "prompt_tokens": request.prompt_tokens,
        "reply_tokens": request.reply_tokens,
        "sequences": budget.sequences,
        "time_to_first_token_ms": round(estimate_first_token(request, device, budget).total_s * 1e3, 2),
        "per_token_ms": round(single.total_s * 1e3, 2),
        "per_token_full_ms": round(full.total_s * 1e3, 2),
        "bound": single.bound,
        "bound_full": full.bound,
        "tokens_per_second_full": round(budget.sequences / full.total_s),
    }
    predictions |= _predict_economics(estimate_economics(request, device, budget, length))
    if speculation:
        predictions |= {
            "speculative_tokens": speculation.depth,
            "acceptance": speculation.acceptance,
            "tokens_per_step": round(speculation.tokens, 3),
            "per_token_speculating_ms": round(speculation.per_token_s * 1e3, 2),
            "speed_up": round(speculation.gain, 3),
        }
    return predictions


def _predict_economics(found: Economics) -> dict[str, int | float | str]:
    """Return the figures of power and price that are known."""
    known = {
        "tokens_per_second_with_prompts": found.tokens_per_second,
        "watts_single": found.watts_single,
        "watts_full": found.watts_full,
        "joules_per_token": found.joules_per_token,
        "usd_per_million_tokens": found.usd_per_million,
    }
    return {name: round(value, 3) for name, value in known.items() if value is not None}


def _list_assumptions(request: Request, device: Device, gpus: int) -> list[str]:
    assumptions = [*ASSUMPTIONS, "overhead, activations and scores are estimates; vLLM measures them when it starts"]
    if gpus > 1:
        assumptions.append(
            f"an all-reduce over {device.link} takes at least {device.link_latency_s * 1e6:.0f} microseconds"
        )
    if not device.gpu:
        rates = f"{device.tflops:g} TFLOPS and {device.bandwidth / 1e9:g} GB/s"
        assumptions.append(f"the processor's {rates} are a guess: measure, and take the times as an order of magnitude")
        each = device.launch_s * 1e6
        assumptions.append(
            f"an operation costs {each:.0f} microseconds beside its work, as on one machine of two cores"
        )
    else:
        kernel = f"a kernel takes at least {device.launch_s * 1e6:.1f} microseconds"
        power = (
            f"a GPU draws {POWER_SHARE_SINGLE:.0%} of its limit with one sequence and {POWER_SHARE_FULL:.0%} in full"
        )
        assumptions += [kernel, power]
    if not request.recorded and not request.lengths_given:
        assumptions.append(
            f"prompts are {request.prompt_tokens:,} and replies {request.reply_tokens:,} tokens long: "
            "--prompt-tokens and --reply-tokens, or --lengths-from RUN"
        )
    if request.speculate != "none" and request.acceptance is None:
        assumptions.append(
            f"a drafted token is accepted with a chance of {request.accepted:g}: measure it, then --acceptance"
        )
    return assumptions


def build_arguments(plan: ServingPlan, **changes: Any) -> list[str]:
    """Return the flags as arguments; a false flag is left out or negated, a mapping becomes JSON."""
    words: list[str] = []
    for name, value in (plan.flags | changes).items():
        if value is False:
            words += [f"--no-{name}"] if name.startswith("enable-") else []  # vLLM enables these by default
            continue
        words.append(f"--{name}")
        if value is not True:
            words.append(json.dumps(value) if isinstance(value, dict) else str(value))
    return words


def dump_plan(plan: ServingPlan) -> str:
    """Return a plan as YAML, headed by the command."""
    command = " ".join(
        shlex.join(["python", "-m", "vllm.entrypoints.openai.api_server", *build_arguments(plan)]).split()
    )
    body = yaml.dump(plan.model_dump(mode="json"), Dumper=QuotingDumper, sort_keys=False, allow_unicode=True, width=118)
    return f"# What it starts: {command}\n# Start it with: alphaloom models serve THIS_FILE\n{body}"


def read_plan(file: Path) -> ServingPlan:
    """Read a plan.

    Raises
    ------
    ServingError
        The file cannot be read, or is not a plan; the message says why.
    """
    try:
        text = parse_text(read_given_text(file), str(file))
    except OSError as error:
        raise ServingError(
            f"{file} cannot be read: {error.strerror or error}", code="plan_unreadable", field="PLAN"
        ) from None
    except (UnicodeDecodeError, SettingsError) as error:
        raise ServingError(
            f"{file} is no YAML: {str(error).splitlines()[0]}", code="plan_unreadable", field="PLAN"
        ) from None
    if text.mistakes:
        raise ServingError(f"{file}: {text.mistakes[0]}", code="plan_unreadable", field="PLAN")
    content = text.value
    if not isinstance(content, dict) or not content.keys() & ServingPlan.model_fields.keys():
        is_router_file = isinstance(content, dict) and "models" in content
        reason = "it names models, as a router.yaml or a campaign file does" if is_router_file else NOT_ONE_KEY
        raise ServingError(
            f"{file} is no plan: {reason}",
            code="plan_unreadable",
            field="PLAN",
            allowed=list(ServingPlan.model_fields),
            hint=WRITE_HINT,
        )
    try:
        return ServingPlan.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "PLAN"
        more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        message = first["msg"].removeprefix("Value error, ")
        raise ServingError(
            f"{file} is no plan: {place}: {message}{more}",
            code="plan_unreadable",
            field=place,
            hint=WRITE_HINT,
        ) from None
