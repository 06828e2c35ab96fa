"""The commands on models: their costs, and their servers: plan a launch that fits a device, describe it, run it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import print_object, print_plain, stderr_console, stdout_console
from ..failures import InterruptionReported
from ..options import AsJson
from .gate import gate
from .spend import spend

if TYPE_CHECKING:
    from ....serving import Request, ServingPlan

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="What models cost; plan, describe and run their servers (vLLM).")
app.command(short_help="Say what the calls of a run, a day or a tenant cost.")(spend)
app.command(short_help="Let tenants share a server in fair turn.")(gate)


class Dtype(StrEnum):
    """The precision of the weights."""

    auto = "auto"
    bfloat16 = "bfloat16"
    float16 = "float16"
    fp8 = "fp8"


class KvDtype(StrEnum):
    """The precision of the cache."""

    auto = "auto"
    fp8 = "fp8"


class Speculate(StrEnum):
    """How tokens are drafted."""

    none = "none"
    ngram = "ngram"
    draft = "draft"


class Machinery(StrEnum):
    """The machinery that a plan is described for."""

    compose = "compose"
    ray = "ray"
    kubernetes = "kubernetes"


PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan, as `alphaloom models plan --out` writes it.")]
MODEL_HELP = "A name such as Llama-3.1-8B, or the path of a config.json."


@app.command(short_help="Plan a launch that fits a device, and say why.")
def plan(
    gpu: Annotated[str, typer.Option("--gpu", metavar="NAME", help="h100, h200, a100, a100-40, l40s or cpu.")],
    model: Annotated[str, typer.Option("--model", metavar="NAME|FILE", help=MODEL_HELP)],
    context: Annotated[
        int | None, typer.Option("--context", metavar="TOKENS", help="Prompt and reply together; 8192 by default.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", help="Sequences of the whole context that must be held at once.")
    ] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", help="How many there are, at most 8; as few as needed by default.")
    ] = None,
    dtype: Annotated[Dtype, typer.Option("--dtype", help="auto: 16 bits, or FP8 where only that fits.")] = Dtype.auto,
    kv_dtype: Annotated[KvDtype, typer.Option("--kv-dtype", help="The precision of the cache.")] = KvDtype.auto,
    speculate: Annotated[Speculate, typer.Option("--speculate", help="How tokens are drafted.")] = Speculate.none,
    draft: Annotated[
        str | None, typer.Option("--draft", metavar="NAME|FILE", help="The model that drafts, with --speculate draft.")
    ] = None,
    acceptance: Annotated[
        float | None, typer.Option("--acceptance", help="Chance that a drafted token is kept, as you measured it.")
    ] = None,
    prompt_tokens: Annotated[int, typer.Option("--prompt-tokens", min=1, help="For the predicted times.")] = 1024,
    reply_tokens: Annotated[int, typer.Option("--reply-tokens", min=1, help="For the predicted times.")] = 256,
    utilization: Annotated[
        float, typer.Option("--gpu-memory-utilization", help="The part of the memory that vLLM may take.")
    ] = 0.9,
    memory_gb: Annotated[
        float | None, typer.Option("--memory-gb", help="With --gpu cpu: its memory; this machine's by default.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="PLAN.yaml", help="Write the plan there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Plan a launch of vLLM that fits, with the arithmetic line by line and the times to expect.

    Numbers only: nothing is started, fetched or measured. What does not fit is refused (3), with what would fit.
    """
    from ....serving import Request, find_device, find_model, make_plan

    device = find_device(gpu, _find_memory(gpu, memory_gb))
    request = Request(
        find_model(model), context, concurrency, gpus, dtype.value, kv_dtype.value, speculate.value,
        find_model(draft, "--draft") if draft else None, acceptance, prompt_tokens, reply_tokens, utilization,
    )  # fmt: skip  # a table
    planned = make_plan(request, device)
    if out:
        _write_plan(planned, out)
    if as_json:
        print_object(
            planned.model_dump(mode="json")
            | {"command": _format_command(planned, None), "file": str(out) if out else None}
        )
        return
    _print_plan(planned, request)
    if out:
        stderr_console().out(f"Written to {out}. Start it with: alphaloom models serve {out}")


@app.command(short_help="Write a plan for docker compose, Ray Serve or Kubernetes.")
def files(
    file: PlanFile,
    kind: Annotated[Machinery, typer.Option("--kind", help="What is to run it.")],
    image: Annotated[str | None, typer.Option("--image", help="The container's image; vLLM's own by default.")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write there; else print it.")] = None,
) -> None:
    """Write the same launch for docker compose, Ray Serve or Kubernetes; secrets by reference, never their values."""
    from ....serving import read_plan, render_file

    text = render_file(read_plan(file), kind.value, image)
    if out is None:
        print_plain(text.rstrip("\n"))
        return
    out.write_text(text, encoding="utf-8")
    stderr_console().out(f"Written to {out}.")


@app.command(short_help="Start the server of a plan, and watch it.")
def serve(
    file: PlanFile,
    host: Annotated[str, typer.Option("--host", help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="Where it listens.")] = 8000,
    deadline: Annotated[float, typer.Option("--deadline", min=0.1, help="Seconds until it must be well.")] = 300.0,
    grace: Annotated[float, typer.Option("--grace", min=0.0, help="Seconds that it has to end.")] = 30.0,
    vllm: Annotated[
        str | None, typer.Option("--vllm", metavar="COMMAND", help="What starts vLLM; this Python's by default.")
    ] = None,
    log: Annotated[Path | None, typer.Option("--log", metavar="FILE", help="The server's log.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the command, and start nothing.")] = False,
) -> None:
    """Start vLLM as planned, say when it answers, and end it with everything it started on Ctrl-C or SIGTERM.

    When it dies, or is not well in time, the last lines of its log are told (3). A key that clients must send is taken
    from VLLM_API_KEY of the environment.
    """
    import os

    from ....serving import read_plan

    planned = read_plan(file)
    if dry_run:
        variables = [f"{name}={value}" for name, value in planned.environment.items()]
        print_plain(" ".join((*variables, _format_command(planned, vllm, host=host, port=port))))
        return
    from ....serving import PortTaken, ServerLaunch, supervise

    command = [*_find_starter(vllm), *_list_arguments(planned, host=host, port=port)]
    place = log or _make_log()
    say = stderr_console().out
    environment = dict(os.environ) | planned.environment
    try:
        supervise(ServerLaunch(command, environment, host, port, place, deadline, grace), say)
    except PortTaken:
        if log is None:
            place.unlink()
        raise
    say("Ended.")
    raise InterruptionReported


def _find_memory(gpu: str, given: float | None) -> float | None:
    """Return the memory of a CPU: the given one, or this machine's."""
    if given is not None or gpu.lower() != "cpu":
        return given
    from ..machine import memory_gb

    return memory_gb()


def _write_plan(planned: ServingPlan, out: Path) -> None:
    from ....serving import dump_plan

    out.write_text(dump_plan(planned), encoding="utf-8")


def _list_arguments(planned: ServingPlan, **more: Any) -> list[str]:
    from ....serving import build_arguments

    return build_arguments(planned, **more)


def _format_command(planned: ServingPlan, vllm: str | None, **more: Any) -> str:
    import shlex

    start = shlex.split(vllm) if vllm else ["python", "-m", "vllm.entrypoints.openai.api_server"]
    return shlex.join([*start, *_list_arguments(planned, **more)])


def _find_starter(vllm: str | None) -> list[str]:
    """Return the command that starts vLLM, or refuse if it is not installed."""
    import shlex
    import sys
    from importlib.util import find_spec

    if vllm:
        return shlex.split(vllm)
    if find_spec("vllm") is None:
        from ....serving import ServingError

        raise ServingError(
            "vLLM is not installed beside this program",
            code="no_server",
            exit_code=3,
            field="--vllm",
            hint="Install it in an environment of its own, then: "
            "--vllm '/path/to/python -m vllm.entrypoints.openai.api_server'",
        )
    return [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]


def _make_log() -> Path:
    import os
    import tempfile

    handle, name = tempfile.mkstemp(prefix="alphaloom-vllm-", suffix=".log")
    os.close(handle)
    return Path(name)


def _print_plan(planned: ServingPlan, request: Request) -> None:
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
    console.print(Text("Assumed: " + "; ".join(planned.assumptions) + "."))
    if place.copies > 1:
        console.print(Text(f"{place.copies} such launches stand side by side on the GPUs that there are."))
    console.print(Text(_describe_weights(planned)))
    console.print(Text("Command:"))
    print_plain(_format_command(planned, None))


def _describe_weights(planned: ServingPlan) -> str:
    """Describe where the weights must be before the server starts."""
    sources = [str(planned.flags["model"]), *([planned.model.draft] if planned.model.draft else [])]
    commands = [f"hf download {source}" for source in sources if not source.startswith("/")]
    if not commands:
        return f"Weights: nothing is fetched, they must lie in {' and '.join(sources)}."
    return (
        "Weights: nothing is fetched (HF_HUB_OFFLINE=1), they must lie on the machine that serves already "
        f"({'; '.join(commands)}); or set that variable to '0' in the plan."
    )
