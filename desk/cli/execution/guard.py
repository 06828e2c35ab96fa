"""The guard's process, and the drill that measures what a kill takes."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ...figures import number
from ..console import print_object, print_plain, stderr_console
from ..options import AsJson, Workspace
from ..serve.listen import address

if TYPE_CHECKING:
    from ....execution.guard import DrillResult, GuardAnswer

GUARD_JOURNAL = "fix/guard.journal"
DRILLS_FOLDER = "drills"
MOST_DRILLS, MOST_ORDERS = 1_000, 10_000

app = typer.Typer(no_args_is_help=True, help="Rehearse what must work when nothing else does.")


def guard(
    venue: Annotated[str, typer.Option("--venue", metavar="HOST:PORT", help="The venue's FIX address.")],
    sender: Annotated[str, typer.Option("--sender", metavar="COMPID", help="Of the guard's own session.")] = "GUARD",
    target: Annotated[str, typer.Option("--target", metavar="COMPID", help="Of the venue.")] = "VENUE",
    fix: Annotated[Literal["FIX.4.4", "FIX.5.0SP2"], typer.Option("--fix", help="What is spoken.")] = "FIX.4.4",
    workspace: Workspace = None,
) -> None:
    """Cancel every open order at a venue as soon as the workspace is halted, from a process and session of its own.

    It reads the halt file every few milliseconds, needs no record and no model, and shares nothing with the process
    that trades. The venue must let this session see copies of the desk's reports, and cancel for all its sessions:
    with one message, or, where it refuses that, order by order. Ctrl-C or SIGTERM ends it.
    """
    from ....execution import HaltSwitch
    from ....execution.fix import TRADING_RESENT, FixConnection, SessionSettings
    from ....execution.guard import Guard, GuardBeat, keep_answer

    place, (host, port) = workspace or DEFAULT_WORKSPACE, address(venue, "--venue")
    running = _Running()

    def keep(answer: GuardAnswer) -> None:
        keep_answer(place, answer)
        print_plain(
            f"Halted: {answer.cancelled} orders cancelled, the last {number(answer.took_ms, 1)} ms after notice."
        )
        if answer.one_by_one:
            print_plain("The venue refuses mass cancels. Ask it about orders from before this guard began to watch.")

    with HaltSwitch(place) as switch, GuardBeat(place, _read_clock_us) as heart:
        (place / GUARD_JOURNAL).parent.mkdir(exist_ok=True)
        settings = SessionSettings(fix, sender, target, True, 30, TRADING_RESENT)
        link = FixConnection(host, port, settings, place / GUARD_JOURNAL, _read_clock_us)
        try:
            watcher = Guard(switch, link, _read_clock_us, keep)
            print_plain(f"Guarding {place} at {host}:{port} as {sender}; Ctrl-C ends it")
            while running.goes_on:
                watcher.step()
                heart.beat()
        finally:
            link.close()


class _Running:
    """Whether the guard goes on: until Ctrl-C or SIGTERM."""

    def __init__(self) -> None:
        self.goes_on = True
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, self._end)

    def _end(self, *_: object) -> None:
        self.goes_on = False


@app.command("kill", short_help="Measure how long a kill takes, on a venue of its own.")
def drill_kill(
    orders: Annotated[int, typer.Option("--orders", min=1, max=MOST_ORDERS, help="Open at the halt.")] = 1_000,
    times: Annotated[int, typer.Option("--times", min=1, max=MOST_DRILLS, help="Drills, one after the other.")] = 10,
    one_by_one: Annotated[
        bool, typer.Option("--one-by-one", help="The venue refuses mass cancels: each order gets its own.")
    ] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Measure how long a kill takes: from the guard's notice of the halt to the last cancel that is acknowledged.

    Each drill starts a process that sends orders to a simulated venue on this machine, and then hangs. Nothing of
    yours is halted. The result is kept in the workspace, in drills/.
    """
    from ....execution.guard import run_drills

    place, began = workspace or DEFAULT_WORKSPACE, datetime.now(UTC)
    console = stderr_console()

    def tell(result: DrillResult) -> None:
        console.print(f"{orders} orders cancelled in {number(result.took_ms, 1)} ms", style="dim")

    with tempfile.TemporaryDirectory(prefix="alphaloom-drill-") as folder:
        results = run_drills(Path(folder), orders, times, tell, mass_cancels=not one_by_one)
    facts = {**_summarise(results, began), "one_by_one": one_by_one}
    kept = place / DRILLS_FOLDER / f"kill-{began:%Y%m%d-%H%M%S}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    if as_json:
        print_object({**facts, "kept": str(kept)})
        return
    p50, p99, most = (number(facts[name], 1) for name in ("p50_ms", "p99_ms", "most_ms"))
    print_plain(f"{times} drills with {orders} open orders: all cancelled. From the guard's notice to the last")
    print_plain(f"acknowledgement: p50 {p50} ms, p99 {p99} ms, longest {most} ms. Kept as {kept}")


def _summarise(results: list[DrillResult], began: datetime) -> dict[str, Any]:
    """Return the figures of drills; a p99 of fewer than 100 is the longest."""
    took, noticed = (sorted(values) for values in zip(*((one.took_ms, one.noticed_ms) for one in results), strict=True))
    last = len(took) - 1
    return {
        "at": began.isoformat(timespec="seconds"),
        "orders": results[0].orders,
        "drills": len(results),
        "p50_ms": round(took[last // 2], 3),
        "p99_ms": round(took[min(-(-99 * len(took) // 100), last + 1) - 1], 3),
        "most_ms": round(took[-1], 3),
        "noticed_p50_ms": round(noticed[last // 2], 3),
        "noticed_most_ms": round(noticed[-1], 3),
        "load_1_min": round(os.getloadavg()[0], 2),
        "cores": os.cpu_count(),
    }


def _read_clock_us() -> int:
    return time.time_ns() // 1000
