"""The command that runs the pipeline on null markets and counts the acceptances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ...figures import number, percent, plural
from ..console import print_object, print_plain, stderr_console
from ..failures import InterruptionReported
from ..options import AsJson, AsOf, CampaignFile, DataOptions, PanelFile, SectorsFile, Workspace

if TYPE_CHECKING:
    from ....evaluation.checks import ControlTally, NullRun
    from .null_runs import NullRuns


CONTROL_FOLDER = "control"
RESAMPLED_NOTE = ", each name's moves drawn anew"
CONTROL_HEADER = "seed  evaluations  trials  accepted  seconds"


def control(
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Markets of each kind: seeds 0, 1, 2 and so on.")] = 20,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    as_of: AsOf = None,
    campaign: CampaignFile = None,
    only: Annotated[
        Literal["synthetic", "panel"] | None, typer.Option("--only", help="One kind of market; both by default.")
    ] = None,
    days: Annotated[int, typer.Option("--days", min=60, help="Days of a synthetic market.")] = 1500,
    names: Annotated[int, typer.Option("--names", min=20, help="Names of a synthetic market.")] = 400,
    evaluations: Annotated[int, typer.Option("--evaluations", min=1, help="Factors scored on each market.")] = 200,
    trials: Annotated[int, typer.Option("--trials", min=10, help="Looks at selection on each market.")] = 10,
    block_days: Annotated[int, typer.Option("--block-days", min=1, help="Days of the panel that stay together.")] = 20,
    sign_days: Annotated[
        int, typer.Option("--sign-days", min=1, help="Days that share a random sign; above 1 the panel is not null.")
    ] = 1,
    null: Annotated[
        Literal["signs", "drawn"],
        typer.Option("--null", help="How the panel is made null: random signs, or each name's own moves drawn anew."),
    ] = "signs",
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Run whole campaigns on markets with nothing in them, and count what is accepted: all of it is false.

    With --panel also on your own panel with its returns made null: centred, permuted by blocks, with random signs.
    With --null drawn each name's own moves are drawn anew instead, which keeps their skew: nothing can earn there, but
    ranks of skewed returns may still be foretold. Stop it at any time; the same command goes on. Exit code 1 says that
    more was accepted than a correct gate lets in; a single acceptance that it may let in is told as such.
    """
    from ....evaluation import Budget
    from ....market import Nulling
    from ..evaluator import settings_at
    from .null_runs import NullRuns, make_panel_settings, make_synthetic_settings

    base = settings_at(DataOptions(campaign, panel, sectors, as_of.date() if as_of else None))
    _refuse_missing_file(base.market.panel, "--panel")
    _refuse_missing_file(base.market.sectors, "--sectors")
    folder = (workspace or Path(".alphaloom")) / CONTROL_FOLDER
    budget = Budget(evaluations=evaluations, trials=trials)
    kinds = {}
    if only != "panel":
        kinds[f"synthetic, {days:,} days x {names:,} names"] = make_synthetic_settings(base, days, names, budget)
    if base.market.panel and only != "synthetic":
        nulling = Nulling(kind=null, block_days=block_days, sign_days=sign_days)
        kinds[f"{base.market.panel.name} made null{RESAMPLED_NOTE if null == 'drawn' else ''}"] = make_panel_settings(
            base, nulling, budget
        )
    if not kinds:
        raise typer.BadParameter("--only panel needs a panel: --panel FILE")
    say = stderr_console().out if as_json else print_plain
    tallies = [_run_seeds(kind, NullRuns(settings, folder), seeds, say) for kind, settings in kinds.items()]
    if as_json:
        print_object({"holds": all(tally.holds for tally in tallies), "controls": [one.record() for one in tallies]})
    if not all(tally.holds for tally in tallies):
        raise typer.Exit(1)


def _refuse_missing_file(file: Path | None, option: str) -> None:
    """Refuse a missing file before hours are spent on the markets that come first."""
    from ....ledger.files import check_given

    try:
        if file is not None:
            check_given(file)
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise typer.BadParameter(f"{file}: {reason}", param_hint=option) from None


def _run_seeds(kind: str, runs: NullRuns, seeds: int, say: Callable[[str], None]) -> ControlTally:
    """Run one kind of market over the seeds, print a line for each, and print the conclusion."""
    from ....evaluation.checks import ControlTally

    stored = runs.known(seeds)
    say(f"{kind}{f' ({stored} of {seeds} seeds known from before)' if stored else ''}")
    say(CONTROL_HEADER)
    outcomes: list[NullRun] = []
    try:
        for run in runs.outcomes(seeds):
            outcomes.append(run)
            say(format_seed_line(run))
    except KeyboardInterrupt:
        stderr_console().out(f"interrupted after {len(outcomes)} of {seeds} seeds; the same command goes on")
        raise InterruptionReported from None
    tally = ControlTally(kind, outcomes)
    say(describe_tally(tally) + "\n")
    return tally


def format_seed_line(run: NullRun) -> str:
    """Return the line of one seed, under `CONTROL_HEADER`."""
    return f"{run.seed:4d}  {run.evaluations:11d}  {run.trials:6d}  {run.accepted:8d}  {run.seconds:7.0f}"


def describe_tally(tally: ControlTally) -> str:
    """Describe the expected and the observed acceptances, and the number that a correct gate would make.

    A count that a correct gate may reach is no failure, but each acceptance is false all the same, and the text says
    so.
    """
    from ....evaluation.checks import share_interval

    low, high = share_interval(tally.fooled, len(tally.runs))
    allowed = "none" if tally.allowed == 0 else f"at most {tally.allowed}"
    sentence = (
        f"Markets with an acceptance, of {len(tally.runs)}: expected {number(tally.expected, 2)} at most, found "
        f"{tally.fooled}, 95 % interval of the share {percent(low, 2)} to {percent(high, 2)} "
        f"({tally.accepted} accepted of {plural(tally.trials, 'trial')})."
    )
    return f"{sentence}\nA correct gate accepts on {allowed} with a chance of 95 %: {_describe_verdict(tally)}."


def _describe_verdict(tally: ControlTally) -> str:
    if not tally.holds:
        return "DOES NOT HOLD: more than a correct gate lets in"
    if not tally.fooled:
        return "holds, nothing was accepted"
    markets = plural(tally.fooled, "market")
    return (
        f"within that, BUT NOT CLEAN: what was accepted on {markets} is false, "
        "and more seeds would tell luck from a flaw"
    )
