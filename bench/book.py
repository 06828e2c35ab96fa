"""A paper book over ten years of real prices, a week a call: gated beside ungated, refusals, kills and replay.

python -m bench.book --panel FILE [--sectors FILE]

Ten textbook factors are put into the library by hand. The shipped policy refuses each of their signals, since nothing
proves them; the second book has exceptions, signed and with a last day. Every factor is charged a trial on the
selection days, and the sealed days are opened once, numbered, in the workspace of this benchmark: what the book earns
there is a look, and it is told apart. A third book is killed with SIGKILL in the middle of steps and must end on the
same bytes.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from alphaloom.campaign import (
    BookData,
    BookSettings,
    BookStep,
    find_book,
    list_steps,
    open_book,
    replay_book,
    step_book,
)
from alphaloom.campaign.campaign import Settings
from alphaloom.desk.cli.main import run_command
from alphaloom.evidence import Window, Windows, fix_windows
from alphaloom.ledger import Ledger, Look, Opening, Run, canonical_json, compute_digest
from alphaloom.market import Panel
from alphaloom.portfolio import measure_book
from alphaloom.risk import POLICY_FILE

from .search.textbook import TEN

LATER = datetime(9999, 1, 1, tzinfo=UTC)
RUN = "benchmark-of-books"
REASON = "ten textbook factors, a benchmark of the paper book"
WEEK = 5
WARMUP_DAYS = 260
SEED = 7


@dataclass(frozen=True)
class Market:
    """The data of the books, its name, and its windows."""

    panel: Panel
    dataset: str
    windows: Windows


def main(given: Sequence[str]) -> int:
    """Keep the books and print what they earned; return 0 if replay and kills hold."""
    options = read_arguments(given)
    settings = Settings.model_validate({"market": {"panel": options.panel, "sectors": options.sectors}})
    workspace = options.folder
    shutil.rmtree(workspace, ignore_errors=True)
    with closing(Ledger.open(workspace, clock=lambda: LATER)) as ledger:
        panel, dataset = settings.market.open(settings.seed)
        market = Market(panel, dataset, fix_windows(panel, ledger, settings.evidence.windows, dataset))
        names = add_factors(workspace, ledger)
        pay_for(ledger, market, names)
        report("shipped policy", keep(ledger, market, "shipped", options), market)
        write_exceptions(workspace, names)
        started = time.process_time()
        steps = keep(ledger, market, "excepted", options, every=WEEK)
        report("with exceptions for ten factors", steps, market)
        print(f"CPU seconds a day: {(time.process_time() - started) / max(len(steps), 1):.3f}")
        differing = [day for day, parts in replay_book(ledger, "excepted") if parts]
        print(f"replay: {len(steps)} steps computed again, {len(differing)} differ")
    same = kill(options, workspace)
    return 0 if same and not differing else 1


def read_arguments(given: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--panel", type=Path, required=True, help="prices, Parquet or CSV")
    options.add_argument("--sectors", type=Path, help="sectors, Parquet or CSV")
    options.add_argument("--weeks", type=int, default=10_000, help="the last so many; all by default")
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--folder", type=Path, default=Path(".alphaloom/book-bench"), help="a workspace of its own")
    options.add_argument("--child", help=argparse.SUPPRESS)
    return options.parse_args(given)


def add_factors(workspace: Path, ledger: Ledger) -> list[str]:
    """Put the factors into the library by hand, and return their ids."""
    for formula in TEN:
        if run_command(["library", "add", formula, "--workspace", str(workspace)]):
            raise SystemExit(f"not added: {formula}")
    return [row.factor_id for row in ledger.library.rows()]


def pay_for(ledger: Ledger, market: Market, names: Sequence[str]) -> None:
    """Charge a trial for each factor, and open the sealed days once."""
    selection, sealed = market.windows.selection, market.windows.sealed
    ledger.runs.start(Run(RUN, {"benchmark": REASON}, 0, "", LATER.isoformat()))
    for name in names:
        ledger.trials.open(Look(RUN, name, market.windows.key(selection)))
    number = ledger.trials.record_opening(Opening(RUN, market.windows.key(sealed), REASON))
    print(f"{len(names)} trials on {describe(selection)}; opening {number} of {describe(sealed)}")


def describe(window: Window) -> str:
    """Return the days of a window."""
    return f"{window.first_day} to {window.last_day}"


def write_exceptions(workspace: Path, names: Sequence[str]) -> None:
    """Write the policy that excepts each factor from being proven and original."""
    lines = ["exceptions:"]
    for name in names:
        for rule in ("proven", "original"):
            lines.append(f"- {{evidence: {name}, rule: {rule}, reason: textbook, owner: Ada, until: 9999-12-31}}")
    (workspace / POLICY_FILE).write_text("\n".join(lines) + "\n")


def keep(ledger: Ledger, market: Market, name: str, options: argparse.Namespace, every: int = 0) -> list[BookStep]:
    """Take a book through all days, in one go or in calls of some days, each with the panel as it was then."""
    open_book(ledger, name, BookSettings(), LATER)
    first = max(WARMUP_DAYS, market.panel.days - WEEK * options.weeks)
    since = market.panel.dates[first].astype(object)
    steps: list[BookStep] = []
    for end in [*range(first + every, market.panel.days, every), market.panel.days] if every else [market.panel.days]:
        data = BookData(market.panel.rows(0, end), market.dataset, since=since)
        steps += step_book(ledger, name, data, lambda: LATER)
    return steps


def report(title: str, steps: Sequence[BookStep], market: Market) -> None:
    """Print what a book earned by window, gated beside ungated, and the refusals by rule."""
    print(f"\n{title}: {len(steps)} steps from {steps[0].day} to {steps[-1].day}")
    print(
        f"{'window':10s} {'days':>5s} {'gated':>8s} {'ungated':>8s} {'Sharpe':>7s} {'ungated':>7s} {'worst fall':>10s}"
    )
    for window in ("", "search", "selection", "sealed"):
        part = [step for step in steps if window in ("", step.window)]
        if len(part) < 3:
            continue
        both = [measure_book([one.equity for one in kind], [0.0] * len(part))
                for kind in ([step.account for step in part], [step.ungated for step in part])]  # fmt: skip  # a pair
        gated, ungated = both
        returns = f"{show(gated.total_return, '8.1%')} {show(ungated.total_return, '8.1%')}"
        ratios = f"{show(gated.sharpe, '7.2f')} {show(ungated.sharpe, '7.2f')}"
        print(f"{window or 'all':10s} {len(part):5d} {returns} {ratios} {show(gated.drawdown, '10.1%')}")
    asked = sum(len(step.decision["rulings"]) for step in steps)
    rules = Counter(rule for step in steps for ruling in step.decision["rulings"] for rule in ruling["refusals"])
    refused = sum(not ruling["approved"] for step in steps for ruling in step.decision["rulings"])
    told = ", ".join(f"{rule} {count:,}" for rule, count in rules.most_common())
    print(f"{asked:,} targets, {refused:,} refused: {told or '-'}")
    halted = [step.day for step in steps if step.mode == "halted"]
    print(f"days halted: {len(halted)}{f', from {halted[0]}' if halted else ''}")


def show(value: float | None, form: str) -> str:
    """Return a figure, or a dash of the same width where there is none."""
    return f"{value:{form}}" if value is not None else "-".rjust(int(form.split(".")[0]))


def kill(options: argparse.Namespace, workspace: Path) -> bool:
    """Kill a process that steps a book, again and again; return whether it ends on the bytes of the other one."""
    rng = random.Random(SEED)
    command = [sys.executable, "-m", "bench.book", "--panel", str(options.panel), "--folder", str(workspace)]
    command += ["--weeks", str(options.weeks), "--child", "killed"]
    command += ["--sectors", str(options.sectors)] if options.sectors else []
    for _ in range(options.kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()  # it begins to step
        time.sleep(rng.uniform(0.1, 6.0))
        process.kill()
        process.wait()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with closing(Ledger.open(workspace, clock=lambda: LATER)) as ledger:
        digests = [
            compute_digest(canonical_json([body["account"] for body in list_steps(ledger, find_book(ledger, name)[0])]))
            for name in ("excepted", "killed")
        ]
    print(
        f"\n{options.kills} kills in the middle of steps: {'the same bytes' if len({*digests}) == 1 else 'OTHER BYTES'}"
    )
    return len({*digests}) == 1


def step_child(given: Sequence[str]) -> int:
    """Step the book that is to be killed."""
    options = read_arguments(given)
    settings = Settings.model_validate({"market": {"panel": options.panel, "sectors": options.sectors}})
    with closing(Ledger.open(options.folder, clock=lambda: LATER)) as ledger:
        panel, dataset = settings.market.open(settings.seed)
        windows = fix_windows(panel, ledger, settings.evidence.windows, dataset, store=False)
        print("steps", flush=True)
        keep(ledger, Market(panel, dataset, windows), options.child, options)
    return 0


if __name__ == "__main__":
    sys.exit(step_child(sys.argv[1:]) if "--child" in sys.argv else main(sys.argv[1:]))
