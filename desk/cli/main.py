"""The command `alphaloom`: its commands, the reporting of every error, and the reaction to Ctrl-C."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from threading import Thread, current_thread, main_thread
from typing import Annotated, Any

import typer

from ..errors import EXIT_INTERRUPTED
from . import doctor, sandbox, targets, web
from .book import commands as book, stress
from .campaign import log, manifest, review, run, status
from .data import audit, fetch, look
from .evidence import acknowledge, combine, control, power, seal, unseal, verify
from .execution import execute, guard, kill
from .factor import compare, formulas, score, similar
from .failures import InterruptionReported, announce, quiet_traces, report_interruption
from .library import commands as library
from .models import commands as models, route
from .news import commands as news
from .options import FormulaCommand
from .record import (
    changes as record_changes,
    drift as record_drift,
    erase as record_erase,
    explain as record_explain,
    keys as record_keys,
    order_rates as record_order_rates,
    share,
    verify as record_verify,
)
from .risk import commands as risk
from .serve import calls, serve, tokens, venue

EPILOG = (
    "Exit codes: 0 done, 1 refused, 2 bad input, 3 a capability is missing, 4 a budget ended, "
    "130 interrupted or stopped."
)

app = typer.Typer(
    name="alphaloom",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EPILOG,  # plain help starts twice as fast as rich help
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=EPILOG, short_help="Run a campaign; without a file, the demo.")(run.run)
app.command(short_help="Go on with a run that was interrupted.")(run.resume)
app.command(short_help="Say where a run stands.")(status.status)
app.command(short_help="Decide on what passed the gate.")(review.review)
app.command(short_help="Tell what happened in a run.")(log.log)
app.command(short_help="Stop a run, losing nothing.")(run.stop)
app.command(short_help="Write a run's report again.")(run.report)
app.command(short_help="Say what a run was for, read and asked, and who decided.")(manifest.manifest)
app.add_typer(web.app, name="desk", short_help="Review in a browser what campaigns found.")
app.command(short_help="Say what accepted factors would hold today.")(targets.targets)
score.app.command(cls=FormulaCommand, short_help="Say what formulas are, or what is wrong.")(formulas.check)
score.app.command(cls=FormulaCommand, short_help="Write formulas in another language.")(formulas.translate)
score.app.command(cls=FormulaCommand, short_help="Say a formula in plain words.")(formulas.explain)
score.app.command(cls=FormulaCommand, short_help="List the operators, or document one.")(formulas.operators)
score.app.command(cls=FormulaCommand, short_help="Find the known formulas most like one.")(similar.similar)
score.app.command(cls=FormulaCommand, short_help="Show two factors side by side.")(compare.compare)
data = typer.Typer(no_args_is_help=True, help="Get prices, and look into them.")
data.command(short_help="Make a panel of tickers: prices, quotes, splits and dividends.")(fetch.fetch)
data.command(short_help="Say what a table of prices is, and how it is read.")(look.look)
data.command(short_help="Say what looks wrong in a table of prices.")(audit.audit)
evidence = typer.Typer(no_args_is_help=True, help="Ask what may be believed.")
evidence.command(short_help="Run the pipeline where nothing can be found.")(control.control)
evidence.command(short_help="Say what the selection window could prove.")(power.power)
evidence.command("open", short_help="Open a run's sealed days, once.")(unseal.open_seal)
evidence.command(short_help="Decide whether a campaign may open its sealed days.")(seal.seal)
evidence.command(short_help="Acknowledge a leak alarm.")(acknowledge.acknowledge)
evidence.command(short_help="Run a campaign's verdicts again.")(verify.verify)
evidence.command(short_help="Show how accepted factors are combined, and how else they could be.")(combine.combine)
app.add_typer(score.app, name="factor")
app.add_typer(library.app, name="library")
app.add_typer(evidence, name="evidence")
book.app.command(short_help="Say what a book would lose in a scenario.")(stress.stress)
app.add_typer(book.app, name="book")
app.add_typer(risk.app, name="risk")
app.command(short_help="Send a book's approved targets to a venue.")(execute.execute)
app.command(short_help="Show a book's orders, or cancel them.")(execute.orders)
app.command(short_help="Stop every order at once; two people let trading go on.")(kill.kill)
app.command(short_help="Cancel every open order once a workspace is halted.")(guard.guard)
app.add_typer(guard.app, name="drill")
app.add_typer(data, name="data")
app.add_typer(news.app, name="news")
sandbox.app.command(short_help="Run a Python factor contained, and say whether it sees the future.")(sandbox.check)
app.add_typer(sandbox.app, name="sandbox")
serve.app.command(short_help="Serve a simulated venue over FIX.")(venue.venue)
app.add_typer(serve.app, name="serve")
app.add_typer(tokens.app, name="token")
app.add_typer(calls.app, name="audit")
record = typer.Typer(no_args_is_help=True, help="Verify the record, and let others verify it.")
record.command(short_help="Say whether the record is as it was written.")(record_verify.verify)
record.command(short_help="Say why something was decided, leaf by leaf.")(record_explain.explain)
record.command(short_help="Write a file that proves one record.")(share.prove)
record.command(short_help="Write the log as files for a web server.")(share.export)
record.command(short_help="Sign another desk's checkpoint.")(share.witness)
record.command(short_help="Keep the checkpoint that a witness signed.")(share.keep)
record.command(short_help="Accept an older or another record in a folder.")(share.acknowledge)
record.command(short_help="List what changed: models, prompts, router, policy.")(record_changes.changes)
record.command(short_help="Say what drifted month by month.")(record_drift.drift)
record.command(short_help="Say how fast books sent orders.")(record_order_rates.order_rates)
record.command(short_help="Try changed models, prompts and a router on fixed markets.")(record_changes.bench)
record.command(short_help="Erase a person's name, or a stored text.")(record_erase.erase)
record.command(short_help="Erase the texts of old model calls.")(record_erase.retain)
record.command(short_help="Retire a lost key, and sign with a new one.")(record_keys.rekey)
app.add_typer(record, name="record")
app.command(short_help="Say which model would answer a prompt.")(route.route)
app.add_typer(models.app, name="models")
app.command(short_help="Write a commented campaign file.")(run.init)
app.command(short_help="Say what this machine can do.")(doctor.doctor)


def _print_version(requested: bool) -> None:
    if requested:
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
def _build_command() -> Callable[..., Any]:
    """Return the command line, built once: typer rebuilds it for every call, which takes longer than most commands."""
    return typer.main.get_command(app)


def run_command(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; every error has been reported by then."""
    try:
        with answer_interrupts():
            code = _build_command()(list(arguments), prog_name="alphaloom", standalone_mode=False)
    except BrokenPipeError:
        _stop_writing()
        return 1
    except InterruptionReported:
        return EXIT_INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        code = EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one place where every error is reported
        return announce(error, as_json="--json" in arguments)
    if code == EXIT_INTERRUPTED:  # typer returns it for an interruption
        return report_interruption(as_json="--json" in arguments)
    return code if isinstance(code, int) else 0


def _stop_writing() -> None:
    """Redirect standard output, so that the interpreter ends quietly after its reader has gone."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _format_warning(message: Warning | str, *_: object, **__: object) -> str:
    """Return a warning without the place in our code that raised it."""
    return f"warning: {message}\n"


def main() -> None:
    """Run the command line.

    The interpreter's last garbage collection takes seconds after a campaign (10 s on a busy machine) and frees nothing
    that the end of the process does not. Therefore all objects are frozen before it.
    """
    warnings.formatwarning = _format_warning
    quiet_traces()
    code = run_command(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


SELF_REPORT_SECONDS = 0.3
"""A command that ends within this time reports the interruption itself."""
DONE_BYTE = b"\0"
FIRST_NOTICE = "Ctrl-C: stopping when the step under way is done; what is on record is kept. Ctrl-C again ends at once."
SECOND_NOTICE = "Ctrl-C: ended at once; what is on record is kept."
SHOW_CURSOR = "\x1b[?25h"
"""Shows the terminal's cursor again, which a live display hides."""


@contextmanager
def answer_interrupts() -> Iterator[None]:
    """While a command runs, answer Ctrl-C on standard error.

    Python's own handler runs in the main thread, which may wait for a computing thread. Therefore a thread reads the
    descriptor into which the signal itself writes. The installed handler still decides what Ctrl-C does.
    """
    if current_thread() is not main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = Thread(target=_watch_signals, args=(reader,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(writer, DONE_BYTE)
        thread.join()
        os.close(writer)
        os.close(reader)


def _watch_signals(reader: int) -> None:
    count = 0
    while (number := os.read(reader, 1)) not in (b"", DONE_BYTE):
        if number[0] != signal.SIGINT:
            continue
        unhandled = _is_unhandled()  # checked at once: a server that ends restores the handler
        count += 1
        if count == 1 and not select.select([reader], [], [], SELF_REPORT_SECONDS)[0]:
            if unhandled or sys.stderr.isatty():  # a client that ends a server reads no lines
                _write_notice(FIRST_NOTICE)
        elif count > 1 and unhandled:
            _write_notice(SECOND_NOTICE)
            os._exit(EXIT_INTERRUPTED)


def _is_unhandled() -> bool:
    """Return whether Ctrl-C is left to Python or asyncio; a server with its own handler ends what it has started."""
    handler = signal.getsignal(signal.SIGINT)
    of_asyncio = isinstance(handler, partial) and getattr(handler.func, "__module__", "").startswith("asyncio.")
    return handler is signal.default_int_handler or of_asyncio


def _write_notice(text: str) -> None:
    """Write a line at once, even while the main thread is writing."""
    line = f"\r{SHOW_CURSOR}{text}\r\n" if sys.stderr.isatty() else f"{text}\n"
    with suppress(OSError, ValueError):  # the reader has gone, or a test has replaced the stream
        os.write(sys.stderr.fileno(), line.encode())
