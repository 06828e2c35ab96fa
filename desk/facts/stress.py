"""A paper book under a scenario, as plain facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..errors import DeskError

if TYPE_CHECKING:
    from ...campaign import Settings
    from ...campaign.what_if import BookScenario, BookStress, HeldBook
    from ...ledger import Ledger
    from ...market import Panel
    from ...risk import RiskLimits

MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
FIELD_MOVE = re.compile(r"([A-Za-z_]\w*)\s+([+-][0-9]+(?:\.[0-9]+)?)")
SCENARIO_WORDS = 'crash, a month such as 2008-10, a column with its change such as "yield_10y +2.0"'
SCENARIO_FORMS = f"{SCENARIO_WORDS}, or a table of moves"
Moves = Mapping[tuple[str, str], float]
"""The moves of a table by ("symbol", name) or ("sector", name)."""


def is_named(text: str) -> bool:
    """Return whether a text names a scenario, and no table of moves."""
    return bool(text == "crash" or MONTH.fullmatch(text) or FIELD_MOVE.fullmatch(text))


def find_recorded_settings(ledger: Ledger, run: str) -> Settings | None:
    """Return the settings of a run, or of the newest campaign where `run` is empty; None where there is none."""
    from ...campaign import Settings

    campaigns = [row for row in ledger.runs.all() if "settings" in row.config and run in ("", row.id)]
    return Settings.from_record(campaigns[-1].config["settings"]) if campaigns else None


def compute_stress(
    ledger: Ledger,
    name: str,
    scenario: tuple[str, Moves | None],
    settings: Callable[[str], Settings],
    limits: Callable[[Settings], RiskLimits | None] = lambda settings: None,
) -> dict[str, Any]:
    """Return what a book would lose in a scenario; nothing is recorded.

    Parameters
    ----------
    scenario
        Its name, and the moves where it is the name of a table.
    settings
        Returns the settings that name the data, from the run to which the book is held.
    limits
        Returns what is asked of the gate beside the policy.

    Raises
    ------
    DeskError
        The book holds nothing, or there is no such scenario.
    """
    from ...campaign.what_if import find_policy, read_held_book, stress_book

    if scenario[1] is None and not is_named(scenario[0]):
        raise refuse_scenario(scenario[0], "This is no scenario.", SCENARIO_WORDS)
    held = read_held_book(ledger, name)
    if not held.account.holdings:
        raise DeskError(
            "The book holds nothing, so nothing can fall.",
            field="NAME",
            got=name,
            hint=f"alphaloom book step {name} takes it through new days.",
            code="empty_book",
            exit_code=1,
        )
    found = settings(held.run)
    panel, dataset = found.market.open(found.seed)
    cut = held.cut(panel)
    held = held.follow(cut)
    built = _build_scenario(scenario, ledger, held, (cut, dataset))
    policy, _ = find_policy(ledger, [held.evidence], cut, asked=limits(found))
    return {"book": name, **_tell(stress_book(held, cut, policy, built))}


def _build_scenario(
    scenario: tuple[str, Moves | None], ledger: Ledger, held: HeldBook, data: tuple[Panel, str]
) -> BookScenario:
    from ...campaign.what_if import make_crash, make_field_move, make_given, make_month

    panel, dataset = data
    text, given = scenario
    names: Sequence[str] = sorted(held.account.holdings)
    if given is not None:
        _refuse_unknown_sectors(given, panel)
        return make_given(panel, given, names, text)
    if text == "crash":
        return make_crash(panel, names)
    if MONTH.fullmatch(text):
        return make_month(ledger, panel, dataset, text, names, held.evidence)
    field, change = text.split()
    return make_field_move(panel, field.lower(), float(change), names)


def refuse_scenario(text: str, message: str, allowed: str) -> DeskError:
    """Return the error on a text that is no scenario."""
    return DeskError(
        message,
        field="--scenario",
        got=text,
        allowed=allowed,
        hint="A change is in the unit of the column: +2.0 for two points of a yield in percent.",
        code="scenario",
    )


def _refuse_unknown_sectors(given: Moves, panel: Panel) -> None:
    known = sorted(panel.group_labels.get("sector", ()))
    lost = sorted(name for kind, name in given if kind == "sector" and name not in known)
    if lost:
        raise DeskError(
            "The scenario names sectors that the panel does not have.",
            field="--scenario",
            got=", ".join(lost),
            allowed=", ".join(known) or "symbols alone: the panel has no sectors, see --sectors",
            code="scenario",
        )


def _tell(found: BookStress) -> dict[str, Any]:
    from ...campaign.what_if import tell_check

    before = {check.rule: tell_check(check)["actual"] for check in found.before}
    return {
        "scenario": found.scenario.title,
        "assumptions": list(found.scenario.notes),
        "day": found.day,
        "equity": found.equity,
        "loss": found.loss,
        "loss_share": found.loss / found.equity if found.equity > 0 else None,
        "names": [asdict(one) for one in found.names],
        "by_sector": dict(found.by_sector),
        "by_part": dict(found.by_part),
        "rules": [{**tell_check(check), "before": before[check.rule]} for check in found.after],
        "binding": [{**tell_check(check), "new": new} for check, new in found.binding],
        "days_to_sell_most": found.most_days,
        "unsold": list(found.unsold),
    }
