"""The commands on models: their costs, and their servers: plan a launch that fits a device, describe it, run it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..console import print_plain, stderr_console
from .gate import gate
from .plan import plan
from .serve import serve
from .spend import spend

__all__ = ["app"]

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


app.command(short_help="Start the server of a plan, and watch it; install vLLM.")(serve)
