"""What model calls cost, by role, intent, model and tenant, beside what one tier alone would have cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..figures import DASH, count, money, plural

if TYPE_CHECKING:
    from ...ledger import Ledger, ModelCall, Run
    from ...router import ModelSettings, RouterConfig, Tier


PARTS = ("role", "intent", "model", "tenant")
REMARK_MODELS = "models"
"""Key of the settings of a run that holds nothing but a model's remarks."""
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
        from ...router.calls import ROUTE_EVENT

        if call.run not in self._decisions:
            self._decisions[call.run] = {
                event.key: event.body for event in self.ledger.events.of(call.run, ROUTE_EVENT)
            }
        return self._decisions[call.run].get(call.key)


def sum_spend(ledger: Ledger, run: str | None, day: str, tenant: str | None) -> dict[str, Any]:
    """Return the cost of the calls of a run, of a UTC day, of a tenant, or of all three together."""
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
        "prices": _list_prices(records),
        "always": {tier: _price_at_tier(records, tier) for tier in TIERS},
        "held": _sum_reserved(ledger, run, tenant),
        "killed": _sum_killed(ledger, run, day, tenant),
    }


def _sum_bill(calls: Iterable[ModelCall]) -> dict[str, Any]:
    from ...router import sum_calls

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
    from ...evaluation import Reviews
    from ...ledger import utc_day

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
    """Return, by role and intent: calls by tier and model, how many had come up, costs beside those of one tier."""
    kinds = sorted({f"{call.role}/{call.intent}" for call in records.calls})
    rows: dict[str, dict[str, Any]] = {}
    for kind in kinds:
        calls = [call for call in records.calls if f"{call.role}/{call.intent}" == kind]
        part = replace(records, calls=calls)
        rows[kind] = {
            **{tier: sum(call.tier == tier for call in calls) for tier in TIERS},
            "models": dict(sorted(Counter(call.model for call in calls).items())),
            "went_up": _count_escalations(part)["by_failure"],
            "usd": math.fsum(call.cost_usd for call in calls),
            "always": {tier: _price_at_tier(part, tier)["usd"] for tier in TIERS},
        }
    return rows


def _list_prices(records: _SpendRecords) -> dict[str, dict[str, Any]]:
    """Return each model's tier, full name and US dollars per million tokens, as its run named it; null if unknown."""
    from ...router.calls import find_price

    rows: dict[str, dict[str, Any]] = {}
    for call in records.calls:
        config = records.config(call.run)
        model = config.models.get(call.model) if config else None
        if call.model in rows or model is None:
            continue
        price = find_price(model) or (None, None)
        usd_in, usd_out = (None if one is None else one * 1e6 for one in price)
        rows[call.model] = {"model": model.model, "tier": model.tier, "usd_in": usd_in, "usd_out": usd_out}
    return dict(sorted(rows.items()))


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
    from ...router.calls import find_price

    first: Callable[[ModelSettings], bool] = lambda model: model.tier == tier
    models = config.models if config else {}
    name = next((name for name, model in models.items() if first(model)), None)
    if name is None:
        return f"run {run} names no {tier} model"
    return find_price(models[name]) or f"the price of {name} is not known"


def _sum_reserved(ledger: Ledger, run: str | None, tenant: str | None) -> dict[str, Any]:
    """Return the largest cost of the calls under way."""
    from ...ledger import PICO

    ledger.holds.lapse()
    reservations = [
        reservation
        for reservation in ledger.holds.open()
        if run in (None, reservation.run) and (tenant is None or reservation.tenant == tenant)
    ]
    return {"calls": len(reservations), "usd": sum(reservation.picos for reservation in reservations) / PICO}


def _sum_killed(ledger: Ledger, run: str | None, day: str, tenant: str | None) -> dict[str, Any]:
    """Return the largest cost of calls whose process was killed; their result is unknown, and the caps count them."""
    from ...ledger import PICO

    reserved = ledger.holds.killed(run, day, tenant)
    return {"calls": reserved.calls, "usd": reserved.picos / PICO}


def _parse_config(recorded: dict[str, Any]) -> RouterConfig | None:
    """Parse the models that a run recorded; None for settings of a version that is no longer read."""
    from pydantic import ValidationError

    from ...router import RouterConfig, drop_removed_settings

    try:
        return RouterConfig.model_validate(drop_removed_settings(recorded))
    except ValidationError:
        return None


def describe_spend(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a bill says, line by line, each with its label."""
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
