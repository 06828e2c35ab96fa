"""The command `alphaloom`: what there is, and one way out for every error."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer

from ..review import review
from . import doctor
from .campaign import init, log, run, status, stop
from .evidence import combine, control, power, unseal, verify
from .factor import check, commands as formulas, sandbox, score, similar
from .factor.formula_command import FormulaCommand
from .failures import EXIT_INTERRUPTED, InterruptionReported, announce, quiet_traces, report_interruption
from .interrupt import answer_interrupts
from .library import commands as library
from .market import audit
from .models import commands as models, route
from .news import commands as news
from .serve import calls, serve, tokens

__all__ = ["main", "run_command"]

EPILOG = "Exit codes: 0 done, 1 refused, 2 bad input, 3 a capability is missing, 4 a budget ended, 130 interrupted or stopped."

app = typer.Typer(
    name="alphaloom", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    rich_markup_mode=None, epilog=EPILOG,       # plain help starts twice as fast as rich help
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
app.command(epilog=EPILOG, short_help="Run a campaign; without a file, the demo.")(run.run)
app.command(short_help="Go on with a run that was interrupted.")(run.resume)
app.command(short_help="Say where a run stands.")(status.status)
app.command(short_help="Decide on what passed the gate.")(review.review)
app.command(short_help="Tell what happened in a run.")(log.log)
app.command(short_help="Stop a run, losing nothing.")(stop.stop)
app.command(short_help="Write a run's report again.")(run.report)
score.app.command(cls=FormulaCommand, short_help="Say what formulas are, or what is wrong.")(formulas.check)
score.app.command(cls=FormulaCommand, short_help="Write formulas in another language.")(formulas.translate)
score.app.command(cls=FormulaCommand, short_help="Say a formula in plain words.")(formulas.explain)
score.app.command(cls=FormulaCommand, short_help="List the operators, or document one.")(formulas.operators)
score.app.command(cls=FormulaCommand, short_help="Find the known formulas most like one.")(similar.similar)
evidence = typer.Typer(no_args_is_help=True, help="Ask what may be believed.")
evidence.command(short_help="Run the pipeline where nothing can be found.")(control.control)
evidence.command(short_help="Say what the selection window could prove.")(power.power)
evidence.command("open", short_help="Open a run's sealed days, once.")(unseal.open_seal)
evidence.command(short_help="Run a campaign's verdicts again.")(verify.verify)
evidence.command(short_help="Show how accepted factors are combined, and how else they could be.")(combine.combine)
app.add_typer(score.app, name="factor")
app.add_typer(library.app, name="library")
app.add_typer(evidence, name="evidence")
app.add_typer(audit.app, name="market")
app.add_typer(news.app, name="news")
sandbox.app.command(short_help="Run a Python factor contained, and say whether it sees the future.")(check.check)
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(serve.app, name="serve")
app.add_typer(tokens.app, name="token")
app.add_typer(calls.app, name="audit")
app.command(short_help="Say which model would answer a prompt.")(route.route)
app.add_typer(models.app, name="models")
app.command(short_help="Write a commented campaign file.")(init.init)
app.command(short_help="Say what this machine can do.")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        from ... import __version__

        sys.stdout.write(f"alphaloom {__version__}\n")
        raise typer.Exit


@app.callback(epilog=EPILOG)
def _root_callback(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Alpha research by agents that can be believed."""


@cache
def _command() -> Callable[..., Any]:
    """Return the command line, built once: typer builds it anew for every call, which takes longer than most commands."""
    return typer.main.get_command(app)


def run_command(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; every error has been told by then."""
    try:
        with answer_interrupts():
            code = _command()(list(arguments), prog_name="alphaloom", standalone_mode=False)
    except BrokenPipeError:
        _stop_writing()
        return 1
    except InterruptionReported:
        return EXIT_INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        code = EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one place where every error becomes words
        return announce(error, as_json="--json" in arguments)
    if code == EXIT_INTERRUPTED:  # which typer makes of an interruption
        return report_interruption(as_json="--json" in arguments)
    return code if isinstance(code, int) else 0


def _stop_writing() -> None:
    """Let the interpreter end quietly although the reader of our output has gone."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _format_warning(message: Warning | str, *_: object, **__: object) -> str:
    """Say a warning without the place in our code that it came from."""
    return f"warning: {message}\n"


def main() -> None:
    """Run the command line.

    The interpreter's last garbage collection takes seconds after a campaign (10 s on a busy machine) and frees nothing that
    the end of the process does not: everything is frozen before.
    """
    warnings.formatwarning = _format_warning
    quiet_traces()
    code = run_command(sys.argv[1:])
    gc.freeze()
    sys.exit(code)
