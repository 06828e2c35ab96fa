"""The command that reports the power of a selection window, before a trial is spent on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ...figures import count, number, p_value_text, plural
from ..console import print_object, stdout_console
from ..options import AsJson, AsOf, CampaignFile, DataOptions, PanelFile, SectorsFile, Workspace, data_line

TABLE_TRIALS = (0, 5, 10, 20, 50)


def power(
    panel: PanelFile = None,
    trials: Annotated[int, typer.Option("--trials", min=0, help="Looks at selection before the one in question.")] = 10,
    days: Annotated[
        int | None, typer.Option("--days", min=40, help="Days of selection; those of the panel by default.")
    ] = None,
    sectors: SectorsFile = None,
    as_of: AsOf = None,
    campaign: CampaignFile = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say which RankIC the selection window could prove after so many trials; none is spent, and no such day is read.

    How much a factor's daily RankIC scatters is measured on the search window, over published factors.
    """
    facts = forecast_power(
        DataOptions(campaign, panel, sectors, as_of.date() if as_of else None, workspace), trials, days
    )
    if as_json:
        print_object(facts)
    else:
        _print(facts)


def forecast_power(place: DataOptions, trials: int, days: int | None) -> dict[str, Any]:
    """Return the power of the window after `trials` tests, and a table over other numbers of tests."""
    from ....evaluation.checks import few_labels, outlook, published_scatter
    from ..evaluator import data_of, open_evaluator

    with open_evaluator("power", place, recorded=False) as evaluator:
        scatter = published_scatter(evaluator)
        amounts = sorted({*TABLE_TRIALS, trials})
        rows = dict(zip(amounts, outlook(evaluator, scatter, amounts, days), strict=True))
        windows = evaluator.windows
        spent = len(evaluator.ledger.trials.overlapping(windows.key(windows.selection)))
        return {
            "data": data_of(place, evaluator),
            "dataset": windows.boundaries.dataset,
            "selection": windows.selection.record(),
            "horizon_days": evaluator.settings.horizon_days,
            "returns": evaluator.settings.returns,
            "asked_days": windows.selection.days if days is None else days,
            "scatter": scatter.record(),
            "trials_spent_here": spent,
            "few_labels": few_labels(windows.selection.days if days is None else days, evaluator.settings.horizon_days),
            **rows[trials].record(),
            "table": [{k: v for k, v in rows[n].record().items() if k != "sentence"} for n in amounts],
        }


def _print(facts: Mapping[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(
        Text(data_line(facts["data"]), style="yellow" if facts["data"]["synthetic"] else "dim"), soft_wrap=True
    )
    console.print(Text(str(facts["sentence"]), style="bold"))
    if facts["few_labels"]:
        console.print(Text(f"warning: {facts['few_labels']}", "yellow"), soft_wrap=True)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
    for name in (
        "after trials",
        "p required",
        "t required",
        "measured RankIC proven",
        "true RankIC accepted 4 times in 5",
    ):
        table.add_column(name, justify="right")
    for row in facts["table"]:
        measured, true = number(row["rank_ic_provable"], 4), number(row["rank_ic_likely"], 4)
        style = "bold" if row["trials"] == facts["trials"] else ""
        table.add_row(
            count(row["trials"]),
            p_value_text(row["p_required"]),
            number(row["t_required"], 2),
            measured,
            true,
            style=style,
        )
    console.print(table)
    for line in _describe_basis(facts):
        console.print(Text(line, style="dim"))


def _describe_basis(facts: Mapping[str, Any]) -> list[str]:
    """Describe the basis of the figures."""
    from ....evidence.originality import describe_published

    window, scatter = facts["selection"], facts["scatter"]
    spent = facts["trials_spent_here"]
    low, high = scatter["middle_half"]
    where = f"{facts['dataset']}: selection {window['first']} to {window['last']}, {count(window['days'])} days"
    measured = f"A day's RankIC scatters by {number(scatter['median'], 2)} on search, overlap counted in"
    days, lost = count(facts["asked_days"]), facts["asked_days"] - facts["days"]
    return [
        (
            f"Of {days} days {count(facts['days'])} are tested: "
            f"what is bought on the last {lost} is sold after the window's end."
        ),
        f"{where}; none was read, and {plural(spent, 'trial was', 'trials were')} spent on them in this workspace.",
        (
            f"{measured}, the median of {describe_published(scatter['factors'])} without a grouping "
            f"(middle half {number(low, 2)} to {number(high, 2)})."
        ),
        "What is proven grows with the scatter; after an acceptance the level doubles and the bar falls.",
    ]
