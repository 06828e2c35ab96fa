"""The facts of the gate's answer to a file of signals."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....risk import SEPARATOR, list_ids
from ...errors import DeskError
from ...facts.standing import DEFAULT_WORKSPACE
from ..options import DataOptions
from ..run_lookup import open_record
from .policy_facts import read_policy_file
from .signal_file import read_signals

if TYPE_CHECKING:
    from ....campaign.what_if import HeldBook, RefusedSignal, SignalCheck
    from ....ledger import Ledger
    from ....market import Panel


def compute_check(
    file: Path, book: str, policy_file: Path | None, place: DataOptions, day: datetime | None
) -> dict[str, Any]:
    """Return the gate's answer to the signals of a file, as plain facts."""
    from ....campaign.what_if import HeldBook, check_signals, find_policy, read_held_book
    from ..evaluator import describe_data
    from ..targets import cut_panel, find_settings

    signals = read_signals(file)
    given = read_policy_file(policy_file) if policy_file else None
    with open_record(place.workspace or DEFAULT_WORKSPACE) as ledger:
        signals = [replace(one, evidence=_complete_ids(ledger, one.evidence)) for one in signals]
        held = read_held_book(ledger, book) if book else HeldBook.empty()
        settings = find_settings(ledger, held.run, place)
        panel = cut_panel(settings.market.open(settings.seed)[0], day)
        _refuse_other_day(held, panel)
        asked = settings.risk if place.campaign else None
        policy, notes = find_policy(ledger, [signal.evidence for signal in signals], panel, given, asked)
        found = check_signals(ledger, panel, signals, policy, held.follow(panel))
    return {
        "data": describe_data(settings, panel),
        "book": book or None,
        **_tell(found, panel),
        "policy_notes": list(notes),
    }


def _complete_ids(ledger: Ledger, evidence: str) -> str:
    """Return evidence with the full id of each factor that is named by its beginning, as lists show it."""
    known = [row.factor_id for row in ledger.library.rows()]
    found = []
    for name in list_ids(evidence):
        matches = [one for one in known if name and one.startswith(name)]
        found.append(matches[0] if len(matches) == 1 else name)
    return SEPARATOR.join(found)


def _refuse_other_day(held: HeldBook, panel: Panel) -> None:
    """Refuse a panel that does not end on the day of the book's last step: its prices and the book's would differ."""
    last = str(panel.dates[-1])
    if held.day and held.day != last:
        raise DeskError(
            "The book's last step and the last day of the panel differ.",
            field="--day",
            got=last,
            allowed=held.day,
            hint=f"Add --day {held.day}, or take the book through the new days: alphaloom book step {held.name}.",
            code="book_day",
        )


def _tell(found: SignalCheck, panel: Panel) -> dict[str, Any]:
    from ....campaign.what_if import tell_check

    decision = found.decision
    rules = [
        {**(tell_check(one.check) if one.check else {"rule": one.rule}), "symbol": one.asset, "refused": one.refused}
        for one in found.rules
    ]
    return {
        "day": str(panel.dates[-1]),
        "for": decision.day,
        "policy": decision.policy,
        "approved": len(decision.approved),
        "refused": len(found.refused),
        "uncomputed": found.uncomputed,
        "rules": rules,
        "refusals": [_tell_refused(one) for one in found.refused],
        "after": [tell_check(check) for check in decision.book],
    }


def _tell_refused(one: RefusedSignal) -> dict[str, Any]:
    from ....campaign.what_if import tell_check
    from ....risk import UNITS_PER_EQUITY

    held, target = one.held_e8 / UNITS_PER_EQUITY, one.signal.target_e8 / UNITS_PER_EQUITY
    share = None if one.share is None else one.share / 1000
    return {
        "symbol": one.signal.asset,
        "held": held,
        "weight": target,
        "rules": [{**tell_check(refusal.check), "needs": refusal.needs} for refusal in one.refusals],
        "passing_share": share,
        "passing_weight": None if share is None else held + (target - held) * share,
    }
