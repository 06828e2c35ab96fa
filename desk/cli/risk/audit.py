"""The command that audits what is traded for group attributes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import DeskError
from ...facts.standing import DEFAULT_WORKSPACE
from ...figures import count
from ..console import make_text, print_object, print_plain, stdout_console
from ..options import AsJson, CampaignFile, DataOptions, PanelFile, SectorsFile, Workspace, data_line
from ..run_lookup import open_record

if TYPE_CHECKING:
    from ....ledger import Ledger
    from ....market import Panel
    from ....risk import Policy

CHANCE = 0.05
"""P-value with size left in from which a size that carries the attribute is mentioned."""


def audit(
    factors: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Factors or combinations; by default all that is accepted and live."),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="NAME", help="A grouping of the panel, or size; repeat it for several. "
                     "By default what the policy's audited names."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Audit anew on the newest day; each audit is charged as one more test.")
    ] = False,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    campaign: CampaignFile = None,
    day: Annotated[
        datetime | None,
        typer.Option("--day", formats=["%Y-%m-%d"], help="The last day of the scores; the panel's last by default."),
    ] = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip  # a table
    """Say whether the scores of what is traded carry a group attribute, such as the sector or the country.

    Groups are permuted over symbols, within quintiles of size and without what size explains. Each audit is recorded,
    is one test of the workspace, and says the smallest gap that it would have seen. Exit code 1: an attribute of the
    policy is carried or has no audit, and no exception excuses it; or one that --attribute names is carried.
    """
    place = DataOptions(campaign, panel, sectors, None, workspace)
    facts = compute_audit(factors or [], attribute or [], place, day, again=again)
    if as_json:
        print_object(facts)
    else:
        _print(facts)
    if any(row["refused"] for row in facts["audits"]):
        raise typer.Exit(1)


def compute_audit(
    factors: list[str], attributes: list[str], place: DataOptions, day: datetime | None, *, again: bool
) -> dict[str, Any]:
    """Return the last audit of each factor and attribute as plain facts; what was not audited is audited first."""
    from ....campaign import audit_evidence, find_live_books, open_computing
    from ....evidence.values import LazySandbox
    from ....library import find_entry
    from ....risk import list_ids, read_policy
    from ..evaluator import describe_data
    from ..targets import cut_panel, find_settings

    with open_record(place.workspace or DEFAULT_WORKSPACE) as ledger:
        settings = find_settings(ledger, "", place)
        data = cut_panel(settings.market.open(settings.seed)[0], day)
        policy = read_policy(ledger.workspace).tightened(settings.risk)[0]
        asked = policy.model_copy(update={"audited": tuple(attributes) or policy.audited})
        _refuse_unnamed(asked, data)
        with LazySandbox(settings.sandbox) as sandbox:
            names = [find_entry(ledger, name).factor_id for name in factors]
            names = names or [*list_ids(find_live_books(ledger, data, sandbox).sizing.evidence)]
            run = next((run.id for run in reversed(ledger.runs.all())), "")
            new = audit_evidence(ledger, open_computing(ledger, data, sandbox), asked, names, run, again=again)
        rows = _tell(ledger, names, asked, bool(attributes))
    return {
        "data": describe_data(settings, data),
        "attributes": list(asked.audited),
        "new": len(new),
        "audits": rows,
    }


def _refuse_unnamed(policy: Policy, panel: Panel) -> None:
    """Refuse a question without an attribute, or with one that the panel lacks."""
    known = [*panel.groups, "size", "restricted", "not_shortable"]
    unknown = [name for name in policy.audited if name not in known]
    if policy.audited and not unknown:
        return
    raise DeskError(
        "The panel does not have this attribute." if unknown else "No attribute is named.",
        field="--attribute",
        got=unknown or None,
        allowed=", ".join(known),
        hint="Name it with --attribute, or for every decision in policy.yaml: audited: [sector].",
        code="attribute",
    )


def _tell(ledger: Ledger, names: list[str], policy: Policy, explored: bool) -> list[dict[str, Any]]:
    """Return a row for each factor and attribute; an explored attribute is refused only where it is carried."""
    from datetime import UTC

    from ....evaluation.checks import list_audits

    today = datetime.now(UTC).date()
    audits = list_audits(ledger)
    rows = []
    for name in names:
        for attribute in policy.audited:
            last = [audit for audit in audits if audit.factor_id == name and attribute in audit.attributes]
            finding: Mapping[str, Any] | None = last[-1].findings.get(attribute) if last else None
            excused = policy.excepts("unexposed", name, today, attribute)
            carried = finding["found"] if finding else not explored
            rows.append({
                "factor": name,
                "attribute": attribute,
                "audit": last[-1].number if last else None,
                "day": last[-1].day if last else None,
                "finding": dict(finding) if finding else None,
                "excused": excused,
                "refused": bool(carried and not excused),
            })  # fmt: skip  # a row
    return rows


def _print(facts: Mapping[str, Any]) -> None:
    from rich.table import Table

    print_plain(data_line(facts["data"]))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in ("factor", "attribute", "carried", "p", "threshold", "strongest statistic", "largest gap", "would see"):
        table.add_column(head, overflow="fold")
    for row in facts["audits"]:
        table.add_row(*map(make_text, _show(row)))
    stdout_console().print(table)
    for row in facts["audits"]:
        if note := _note(row):
            print_plain(note)
    print_plain(
        "Gaps are in standard deviations of a day's scores. Would see: the smallest gap of the easiest group, and of "
        "the hardest, that such an audit finds four times in five."
    )
    print_plain(f"{count(facts['new'])} new audits; one that is on record is not charged again.")


def _show(row: Mapping[str, Any]) -> tuple[str, ...]:
    one = row["finding"]
    if one is None:
        return row["factor"], row["attribute"], "not audited", "", "", "", "", ""
    seen = f"{one['smallest_gap']:.2f} {one['smallest_group']}"
    if one["weakest_group"] != one["smallest_group"]:
        seen += f", {one['weakest_gap']:.2f} {one['weakest_group']}"
    return (
        row["factor"], row["attribute"], "yes" if one["found"] else "not seen", f"{one['p_value']:.2g}",
        f"{one['level']:.2g}", one["statistic"], f"{one['gap']:+.2f} {one['group']}", seen,
    )  # fmt: skip  # a table


def _note(row: Mapping[str, Any]) -> str:
    one = row["finding"]
    if row["excused"]:
        return f"{row['factor']}: an exception of the policy excuses {row['attribute']}."
    if one is None:
        return (
            f"{row['factor']}: {row['attribute']} has no audit: the factor is not in the library or needs another "
            "column, or fewer than two groups have two names with scores."
        )
    if not one["found"] and one["p_with_size"] is not None and one["p_with_size"] <= CHANCE:
        return (
            f"{row['factor']}: {row['attribute']} goes with size (p {one['p_with_size']:.2g} where size is left in): "
            "large and small names of one group score alike in all groups."
        )
    return ""
