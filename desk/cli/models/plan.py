"""The command that plans a launch of a model server, and measures one beside its plan."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ..console import print_object, print_plain, stderr_console, stdout_console
from ..options import AsJson, Workspace
from ..run_lookup import find_run, locate_run
from .gate import parse_server_url

if TYPE_CHECKING:
    from ....serving import Architecture, Device, RecordedLengths, Request, ServingPlan


KEY_VARIABLE = "VLLM_API_KEY"
COLUMNS = (
    ("first token, ms", "time_to_first_token_ms"),
    ("per token, ms", "per_token_ms"),
    ("tokens/s", "tokens_per_second"),
)


class Dtype(StrEnum):
    """The precision of the weights."""

    auto = "auto"
    bfloat16 = "bfloat16"
    float16 = "float16"
    fp8 = "fp8"
    awq = "awq"
    gptq = "gptq"


class KvDtype(StrEnum):
    """The precision of the cache."""

    auto = "auto"
    fp8 = "fp8"


class Speculate(StrEnum):
    """How tokens are drafted."""

    none = "none"
    ngram = "ngram"
    draft = "draft"


DTYPE_HELP = "auto: 16 bits, or FP8 where only that fits; awq, gptq: an INT4 checkpoint."
MODEL_HELP = "A name such as Llama-3.1-8B, or the path of a config.json."
MEASURE_HELP = "Also measure the server there, with a bounded number of requests: http://HOST:PORT."
Gpu = Annotated[str, typer.Option("--gpu", metavar="NAME", help="h100, h200, a100, a100-40, l40s, l40 or cpu.")]
Model = Annotated[str, typer.Option("--model", metavar="NAME|FILE", help=MODEL_HELP)]
Context = Annotated[
    int | None, typer.Option("--context", metavar="TOKENS", help="Prompt and reply together; 8192 by default.")
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", help="Sequences of the whole context that must be held at once.")
]
Gpus = Annotated[int | None, typer.Option("--gpus", help="How many there are, at most 8; as few as needed by default.")]
WeightsType = Annotated[Dtype, typer.Option("--dtype", help=DTYPE_HELP)]
Source = Annotated[str | None, typer.Option("--source", metavar="NAME|FOLDER", help="Where vLLM finds the weights.")]
CacheType = Annotated[KvDtype, typer.Option("--kv-dtype", help="The precision of the cache.")]
Drafting = Annotated[Speculate, typer.Option("--speculate", help="How tokens are drafted.")]
Draft = Annotated[
    str | None, typer.Option("--draft", metavar="NAME|FILE", help="The model that drafts, with --speculate draft.")
]
Acceptance = Annotated[
    float | None, typer.Option("--acceptance", help="Chance that a drafted token is kept, as you measured it.")
]
PromptTokens = Annotated[
    int | None, typer.Option("--prompt-tokens", min=1, help="Length of a prompt; 1024 by default.")
]
ReplyTokens = Annotated[int | None, typer.Option("--reply-tokens", min=1, help="Length of a reply; 256 by default.")]
LengthsFrom = Annotated[
    str | None, typer.Option("--lengths-from", metavar="RUN", help="Both lengths, from a run's model calls.")
]
UsdPerHour = Annotated[
    float | None, typer.Option("--usd-per-hour", help="Your price of one GPU; for USD per million tokens.")
]
Utilization = Annotated[
    float, typer.Option("--gpu-memory-utilization", help="The part of the memory that vLLM may take.")
]
MemoryGb = Annotated[
    float | None, typer.Option("--memory-gb", help="With --gpu cpu: its memory; this machine's by default.")
]
MeasuredServer = Annotated[str | None, typer.Option("--measure", metavar="URL", help=MEASURE_HELP)]
MeasureSeconds = Annotated[
    float, typer.Option("--measure-seconds", min=1, max=3600, help="With --measure: its time in all, at most.")
]
MeasureOut = Annotated[
    Path | None, typer.Option("--measure-out", metavar="FILE.json", help="With --measure: write the figures there.")
]
PlanOut = Annotated[Path | None, typer.Option("--out", metavar="PLAN.yaml", help="Write the plan there.")]


def plan(
    gpu: Gpu,
    model: Model,
    context: Context = None,
    concurrency: Concurrency = None,
    gpus: Gpus = None,
    dtype: WeightsType = Dtype.auto,
    source: Source = None,
    kv_dtype: CacheType = KvDtype.auto,
    speculate: Drafting = Speculate.none,
    draft: Draft = None,
    acceptance: Acceptance = None,
    prompt_tokens: PromptTokens = None,
    reply_tokens: ReplyTokens = None,
    lengths_from: LengthsFrom = None,
    usd_per_hour: UsdPerHour = None,
    utilization: Utilization = 0.9,
    memory_gb: MemoryGb = None,
    measured_server: MeasuredServer = None,
    measure_seconds: MeasureSeconds = 120.0,
    measure_out: MeasureOut = None,
    workspace: Workspace = None,
    out: PlanOut = None,
    as_json: AsJson = False,
) -> None:
    """Plan a launch of vLLM that fits, with the arithmetic line by line, the times to expect, power and price.

    Numbers only: nothing is started or fetched, and nothing measured without --measure. What does not fit is refused
    (3), with what would fit. With --measure, 28 requests at most are sent to the server: its time to first token, time
    per token and tokens a second with 1, 4 and 8 streams stand beside the plan's. A key is taken from VLLM_API_KEY.
    """
    from ....serving import Request, find_device, find_model, make_plan

    if measured_server is None and measure_out is not None:
        raise typer.BadParameter("goes with --measure", param_hint="--measure-out")
    device = find_device(gpu, _find_memory(gpu, memory_gb))
    recorded = _read_lengths(lengths_from, workspace, prompt_tokens, reply_tokens)
    prompt, reply = (recorded.prompt, recorded.reply) if recorded else (prompt_tokens, reply_tokens)
    request = Request(
        _choose_weights(find_model(model), dtype, source), context, concurrency, gpus,
        "auto" if dtype in (Dtype.awq, Dtype.gptq) else dtype.value, kv_dtype.value, speculate.value,
        find_model(draft, "--draft") if draft else None, acceptance, prompt or Request.prompt_tokens,
        reply or Request.reply_tokens, utilization, usd_per_hour, recorded,
    )  # fmt: skip  # a table
    planned = make_plan(request, device)
    if out:
        _write_plan(planned, out)
    figures = measure(measured_server, request, device, measure_seconds, measure_out) if measured_server else None
    if as_json:
        _print_json(planned, out, workspace, figures)
        return
    _print_plan(planned, request, workspace)
    if figures:
        print_measurement(figures, measure_out)
    if out:
        stderr_console().out(f"Written to {out}. Start it with: alphaloom models serve {out}")


def _find_memory(gpu: str, given: float | None) -> float | None:
    """Return the memory of a CPU: the given one, or this machine's."""
    if given is not None or gpu.lower() != "cpu":
        return given
    from ..machine import memory_gb

    return memory_gb()


def _read_lengths(
    run: str | None, workspace: Path | None, prompt: int | None, reply: int | None
) -> RecordedLengths | None:
    """Return the lengths of a run's recorded model calls; None where no run is named."""
    if run is None:
        return None
    if prompt is not None or reply is not None:
        raise typer.BadParameter("says both lengths, and one is given too", param_hint="--lengths-from")
    from datetime import UTC, datetime

    from ....ledger import Ledger
    from ....serving import summarise_lengths

    name, place = locate_run(run, workspace)
    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        found = find_run(ledger, name).id
        calls = ledger.calls.of(found)
    return summarise_lengths(f"run {found}", ((call.tokens_in, call.tokens_out) for call in calls))


def _choose_weights(model: Architecture, dtype: Dtype, source: str | None) -> Architecture:
    """Return the model with the weights that were asked for: in INT4, or at another place."""
    from dataclasses import replace

    from ....serving import assume_int4

    if dtype in (Dtype.awq, Dtype.gptq) and model.stored != dtype.value:
        model = assume_int4(model, dtype.value)
    return replace(model, source=source, assumed_int4=False) if source else model


def _write_plan(planned: ServingPlan, out: Path) -> None:
    from ....serving import dump_plan

    out.write_text(dump_plan(planned), encoding="utf-8")


def list_arguments(planned: ServingPlan, **more: Any) -> list[str]:
    """Return the arguments of vLLM for a plan, and further ones."""
    from ....serving import build_arguments

    return build_arguments(planned, **more)


def format_command(planned: ServingPlan, starter: list[str], **more: Any) -> str:
    """Return the command that starts a plan, as one types it."""
    import shlex

    return shlex.join([*starter, *list_arguments(planned, **more)])


def _find_starter(workspace: Path | None) -> list[str]:
    """Return the command that starts vLLM here: of the workspace's environment, else of any Python that has it."""
    from ....serving import ENVIRONMENT_FOLDER, SERVER_MODULE, find_environment

    found = find_environment((workspace or DEFAULT_WORKSPACE) / ENVIRONMENT_FOLDER)
    return found.starter if found else ["python", "-m", SERVER_MODULE]


def _print_json(planned: ServingPlan, out: Path | None, workspace: Path | None, figures: dict[str, Any] | None) -> None:
    command = format_command(planned, _find_starter(workspace))
    record = planned.model_dump(mode="json") | {"command": command, "file": str(out) if out else None}
    print_object(record | ({"measurement": figures} if figures else {}))


def _print_plan(planned: ServingPlan, request: Request, workspace: Path | None) -> None:
    from rich.table import Table
    from rich.text import Text

    console, place = stdout_console(), planned.device
    devices = f"{place.count} x {place.title}" if place.count > 1 else place.title
    console.print(Text(f"{planned.model.name} on {devices}, {request.length:,} tokens of context", style="bold"))
    console.print(Text(f"Why: {planned.why}.{f' {planned.model.note}' if planned.model.note else ''}"))
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for line in planned.arithmetic:
        table.add_row(Text(line.what), Text(f"{line.value:,}"), Text(line.unit), Text(line.how))
    console.print(table)
    console.print(Text(f"Confidential computing: {place.confidential}."))
    console.print(Text("Assumed: " + "; ".join(planned.assumptions) + "."))
    if place.copies > 1:
        console.print(Text(f"{place.copies} such launches stand side by side on the GPUs that there are."))
    console.print(Text(_describe_weights(planned, request)))
    console.print(Text("Command:"))
    print_plain(format_command(planned, _find_starter(workspace)))


def _describe_weights(planned: ServingPlan, request: Request) -> str:
    """Describe where the weights must be before the server starts."""
    sources = [str(planned.flags["model"]), *([planned.model.draft] if planned.model.draft else [])]
    commands = [f"hf download {source}" for source in sources if not source.startswith("/")]
    if request.model.assumed_int4:
        return f"Weights: a checkpoint in {request.model.stored.upper()}, to be named with --source."
    if not commands:
        return f"Weights: nothing is fetched, they must lie in {' and '.join(sources)}."
    return (
        "Weights: nothing is fetched (HF_HUB_OFFLINE=1), they must lie on the machine that serves already "
        f"({'; '.join(commands)}); or set that variable to '0' in the plan."
    )


def measure(address: str, request: Request, device: Device, limit_s: float, out: Path | None) -> dict[str, Any]:
    """Measure the server at an address, and return its figures beside the plan's; write them as JSON if asked."""
    import json
    import time
    from datetime import UTC, datetime

    import anyio

    from ....serving.measurement import Measurement, MeasurementTerms, ServerClient, compare_plan, measure_server

    place, at = parse_server_url(address, "--measure"), datetime.now(UTC)
    terms = MeasurementTerms(
        request.prompt_tokens, request.reply_tokens, request.model.name, time_limit_s=limit_s, mark=at.isoformat()
    )

    async def ask() -> Measurement:
        key = os.environ.get(KEY_VARIABLE) or None
        async with ServerClient(place, key, time.monotonic) as client:
            return await measure_server(client, terms, time.monotonic, stderr_console().out)

    figures = compare_plan(anyio.run(ask), request, device, at)
    if out:
        out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return figures


def print_measurement(figures: dict[str, Any], out: Path | None) -> None:
    """Print the measured figures and the plan's, a row for each number of streams."""
    from rich.table import Table
    from rich.text import Text

    console, server, device = stdout_console(), figures["server"], figures["device"]
    version = f"version {server['version']}" if server["version"] else "version not told"
    title = f"Measured on {figures['measured_at']} at {figures['address']}: {server['model']}, {version}"
    console.print(Text(title, style="bold"))
    console.print(
        Text(f"The plan's figures are for {device['count']} x {device['title']}, as you said: no server tells.")
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("streams", "answered", "tokens in", "out", *(f"{title} (plan)" for title, _ in COLUMNS)):
        table.add_column(name, justify="right", no_wrap=True)
    for level in figures["levels"]:
        both = [f"{_show(level['measured'][name])} ({level['planned'][name]:,g})" for _, name in COLUMNS]
        lengths = (_show(level["prompt_tokens"]), _show(level["reply_tokens"]))
        asked = level["answered"] + level["failed"] + level["given_up"]
        table.add_row(str(level["streams"]), f"{level['answered']} of {asked}", *lengths, *both)
    console.print(table)
    for level in figures["levels"]:
        if level["first_failure"]:
            console.print(Text(f"{level['failed']} failed with {level['streams']} at once: {level['first_failure']}"))
    for note in figures["notes"]:
        console.print(Text(f"Note: {note}."))
    if out:
        stderr_console().out(f"Measurement written to {out}.")


def _show(value: float | None) -> str:
    return "-" if value is None else f"{value:,g}"
