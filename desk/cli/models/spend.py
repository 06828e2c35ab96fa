"""The command that reports the cost of model calls: of a run, a day or a tenant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...figures import DASH, count, money, plural
from ..console import print_object, stderr_console, stdout_console
from ..options import AsJson, Workspace
from ..run_lookup import REMARK_MODELS, find_run, locate_run

if TYPE_CHECKING:
    from rich.table import Table

    from ....ledger import Ledger, ModelCall, Run
    from ....router import ModelSettings, RouterConfig, Tier


PARTS = ("role", "intent", "model", "tenant")
TIERS: tuple[Tier, ...] = ("local", "frontier")


@dataclass
class _SpendRecords:
    """The calls of a report, and the records of their runs."""

    ledger: Ledger
    calls: list[ModelCall]
    day: str
    _configs: dict[str, RouterConfig | None] = field(default_factory=dict)
    _decisions: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def runs(self) -> list[Run]:
        """The runs that made the calls, oldest first."""
        names = {call.run for call in self.calls}
        return [run for run in self.ledger.runs.all() if run.id in names]

    def config(self, run: str) -> RouterConfig | None:
        """Return the models that a run began with: a campaign's, or those that remarked; None if it had none."""
        if run not in self._configs:
            begun = self.ledger.runs.find(run).config
            recorded = (begun.get("settings") or begun).get(REMARK_MODELS)
            self._configs[run] = _parse_config(recorded) if recorded else None
        return self._configs[run]

    def decision(self, call: ModelCall) -> dict[str, Any] | None:
        """Return the routing decision of a call; None for calls of versions that did not record it."""
        from ....router.calls import ROUTE_EVENT

        if call.run not in self._decisions:
            self._decisions[call.run] = {
                event.key: event.body for event in self.ledger.events.of(call.run, ROUTE_EVENT)
            }
        return self._decisions[call.run].get(call.key)


def spend(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A run's id, its folder, or latest.")] = None,
    day: Annotated[
        datetime | None, typer.Option("--day", formats=["%Y-%m-%d"], help="Calls of all runs on this day, UTC.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Calls on behalf of this name.")
    ] = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say what model calls took, by role, intent, model and tenant, and for each accepted factor.

    Give RUN, --day, --tenant, or several: then calls that are all of it. Beside it stands what the same tokens would
    have cost at the first model of each tier that the run names: an estimate, since another model would have said
    something else. Replies that another run had paid for are priced, and told apart.
    """
    if run is None and day is None and tenant is None:
        raise typer.BadParameter("give a run, --day or --tenant", param_hint="RUN")
    name, place = locate_run(run or "latest", workspace)
    from ....ledger import Ledger

    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        report = statement(ledger, name if run is not None else None, day.date().isoformat() if day else "", tenant)
    if as_json:
        print_object(report)
    else:
        _print(report)


def statement(ledger: Ledger, name: str | None, day: str, tenant: str | None) -> dict[str, Any]:
    """Return the cost of the calls of a run, of a UTC day, of a tenant, or of all three together."""
    run = find_run(ledger, name).id if name is not None else None
    if day or tenant is not None:
        calls = [call for call in ledger.holds.calls(day, tenant) if run is None or call.run == run]
    else:
        calls = ledger.calls.of(str(run))
    records = _SpendRecords(ledger, calls, day)
    accepted = _count_accepted(records)
    total = _sum_bill(calls)
    return {
        "run": run,
        "day": day or None,
        "tenant": tenant,
        **total,
        "paid_usd": math.fsum(call.cost_usd for call in calls if call.attempts),
        "reused": sum(not call.attempts for call in calls),
        **{f"by_{part}": _list_bills(calls, part) for part in PARTS},
        "accepted": accepted,
        "per_accepted": {name: value / accepted for name, value in total.items()} if accepted else None,
        "escalations": _count_escalations(records),
        "by_question": _list_questions(records),
        "always": {tier: _price_at_tier(records, tier) for tier in TIERS},
        "held": _sum_reserved(ledger, run, tenant),
        "killed": _sum_killed(ledger, run, day, tenant),
    }


def _sum_bill(calls: Iterable[ModelCall]) -> dict[str, Any]:
    from ....router import sum_calls

    return asdict(sum_calls(calls))


def _list_bills(calls: list[ModelCall], part: str) -> dict[str, dict[str, Any]]:
    """Return one bill for each value of `part`, the most expensive first."""
    words = sorted({str(getattr(call, part)) for call in calls})
    bills = {word: _sum_bill(call for call in calls if getattr(call, part) == word) for word in words}
    return dict(sorted(bills.items(), key=lambda pair: (-pair[1]["usd"], pair[0])))


def _count_accepted(records: _SpendRecords) -> int:
    """Return the number of factors that the runs accepted.

    For a day it counts those accepted on that day; for a tenant, those of all runs with its calls.
    """
    from ....evaluation import Reviews
    from ....ledger import utc_day

    accepted = 0
    for run in records.runs:
        reviews = Reviews.of(records.ledger, run)
        for entry in records.ledger.verdicts.entries(run.id):
            accepted += reviews.word(entry.record) == "accepted" and records.day in ("", utc_day(entry.at))
    return accepted


def _count_escalations(records: _SpendRecords) -> dict[str, int]:
    """Count the calls that escalated by their prompt, those that did so after a local failure, and the unknown."""
    counts = {"by_prompt": 0, "by_failure": 0, "unknown": 0}
    for call in records.calls:
        decision = records.decision(call)
        if decision is None:
            counts["unknown"] += 1
        elif not _has_local_tier(records.config(call.run)):
            continue
        elif _began_at_frontier(decision):
            counts["by_prompt"] += not _is_tier_fixed(records.config(call.run), decision)
        else:
            counts["by_failure"] += call.tier == "frontier"
    return counts


def _began_at_frontier(decision: dict[str, Any]) -> bool:
    """Return whether a task was first asked of the frontier tier; older records have the tier of the call alone."""
    return bool(decision.get("first_tier", decision["tier"]) == "frontier")


def _list_questions(records: _SpendRecords) -> dict[str, dict[str, Any]]:
    """Return, by role and intent: calls by tier, how many had come up, and costs beside those of one tier alone."""
    kinds = sorted({f"{call.role}/{call.intent}" for call in records.calls})
    rows: dict[str, dict[str, Any]] = {}
    for kind in kinds:
        calls = [call for call in records.calls if f"{call.role}/{call.intent}" == kind]
        part = replace(records, calls=calls)
        rows[kind] = {
            **{tier: sum(call.tier == tier for call in calls) for tier in TIERS},
            "went_up": _count_escalations(part)["by_failure"],
            "usd": math.fsum(call.cost_usd for call in calls),
            "always": {tier: _price_at_tier(part, tier)["usd"] for tier in TIERS},
        }
    return rows


def _has_local_tier(config: RouterConfig | None) -> bool:
    """Return whether there is a local tier to escalate from; True if unknown."""
    return config is None or any(model.tier == "local" for model in config.models.values())


def _is_tier_fixed(config: RouterConfig | None, decision: dict[str, Any]) -> bool:
    """Return whether the settings fix the tier of an intent or a role, whatever the prompt."""
    if config is None:
        return False
    choices = config.routing.intents.get(decision["intent"]), config.roles.get(decision["signals"]["role"] or "")
    return any(choice not in (None, "auto") for choice in choices)


def _price_at_tier(records: _SpendRecords, tier: Tier) -> dict[str, Any]:
    """Return the cost of all tokens at the first model of one tier, or why it is unknown."""
    prices: dict[str, tuple[float, float] | str] = {}
    for call in records.calls:
        if call.run not in prices:
            prices[call.run] = _find_price(records.config(call.run), tier, call.run)
    why = next((entry for entry in prices.values() if isinstance(entry, str)), "" if prices else "no call is recorded")
    usd = math.fsum(
        call.tokens_in * price[0] + call.tokens_out * price[1]
        for call in records.calls
        if not isinstance(price := prices[call.run], str)
    )
    return {"usd": None if why else usd, "why": why, "estimate": True}


def _find_price(config: RouterConfig | None, tier: Tier, run: str) -> tuple[float, float] | str:
    """Return the prices of a token in and out at the first model of a tier, or why they are unknown."""
    from ....router.calls import find_price

    first: Callable[[ModelSettings], bool] = lambda model: model.tier == tier
    models = config.models if config else {}
    name = next((name for name, model in models.items() if first(model)), None)
    if name is None:
        return f"run {run} names no {tier} model"
    return find_price(models[name]) or f"the price of {name} is not known"


def _sum_reserved(ledger: Ledger, run: str | None, tenant: str | None) -> dict[str, Any]:
    """Return the largest cost of the calls under way."""
    from ....ledger import PICO

    ledger.holds.lapse()
    reservations = [
        reservation
        for reservation in ledger.holds.open()
        if run in (None, reservation.run) and (tenant is None or reservation.tenant == tenant)
    ]
    return {"calls": len(reservations), "usd": sum(reservation.picos for reservation in reservations) / PICO}


def _sum_killed(ledger: Ledger, run: str | None, day: str, tenant: str | None) -> dict[str, Any]:
    """Return the largest cost of calls whose process was killed; their result is unknown, and the caps count them."""
    from ....ledger import PICO

    reserved = ledger.holds.killed(run, day, tenant)
    return {"calls": reserved.calls, "usd": reserved.picos / PICO}


def _parse_config(recorded: dict[str, Any]) -> RouterConfig | None:
    """Parse the models that a run recorded; None for settings of a version that is no longer read."""
    from pydantic import ValidationError

    from ....router import RouterConfig, drop_removed_settings

    try:
        return RouterConfig.model_validate(drop_removed_settings(recorded))
    except ValidationError:
        return None


def _print(report: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    of = [report["run"], report["day"] and f"{report['day']} (UTC)", report["tenant"] and f"tenant {report['tenant']}"]
    console.print(Text(", ".join(part_name for part_name in of if part_name), style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in _lines(report):
        grid.add_row(f"  {label}", Text(text))
    console.print(grid)
    if not report["calls"]:
        stderr_console().print("No call is recorded there.")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("by", "", "calls", "tokens in", "tokens out", "cost"):
        table.add_column(heading, justify="left" if heading in ("by", "") else "right", no_wrap=heading != "")
    for part in PARTS:
        for word, bill in report[f"by_{part}"].items():
            figures = (count(bill["calls"]), count(bill["tokens_in"]), count(bill["tokens_out"]), money(bill["usd"]))
            table.add_row(part, Text(word or DASH), *figures)
    console.print(table)
    console.print(_tabulate_questions(report["by_question"]))


def _tabulate_questions(rows: dict[str, dict[str, Any]]) -> Table:
    """Return the table of questions: where each kind went, and what it would have cost at one tier alone."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("question", "local", "frontier", "went up", "cost", "always local", "always frontier"):
        table.add_column(heading, justify="left" if heading == "question" else "right", no_wrap=heading != "question")
    for kind, row in rows.items():
        counts = (count(row["local"]), count(row["frontier"]), count(row["went_up"]))
        alone = (DASH if row["always"][tier] is None else money(row["always"][tier]) for tier in TIERS)
        table.add_row(Text(kind), *counts, money(row["usd"]), *alone)
    return table


def _lines(report: dict[str, Any]) -> list[tuple[str, str]]:
    up, per_accepted, reserved = report["escalations"], report["per_accepted"], report["held"]
    tokens = f"{count(report['tokens_in'])} tokens in, {count(report['tokens_out'])} out"
    reused = f", {plural(report['reused'], 'reply', 'replies')} reused" if report["reused"] else ""
    lines = [
        ("spend", f"{plural(report['calls'], 'model call')}, {tokens}, {money(report['usd'])}"),
        ("paid", f"{money(report['paid_usd'])}{reused}"),
        ("accepted", plural(report["accepted"], "factor")),
        (
            "for each accepted",
            f"{money(per_accepted['usd'])}, {per_accepted['calls']:,.1f} calls" if per_accepted else DASH,
        ),
        (
            "went up",
            f"{count(up['by_prompt'])} by the prompt, {count(up['by_failure'])} since the local tier had failed",
        ),
    ]
    lines += [("not known why", plural(up["unknown"], "call"))] if up["unknown"] else []
    for tier in TIERS:
        always = report["always"][tier]
        text = f"{DASH}: {always['why']}" if always["why"] else f"{money(always['usd'])} (an estimate: the same tokens)"
        lines.append((f"always {tier}", text))
    lines.append(("under way", f"{plural(reserved['calls'], 'call')}, at most {money(reserved['usd'])}"))
    killed = report["killed"]
    if killed["calls"]:
        text = f"{plural(killed['calls'], 'call')}, at most {money(killed['usd'])} more: counted under the caps"
        lines.append(("killed under way", text))
    return lines
