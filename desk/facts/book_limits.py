"""The exposures of a book after its last step, its head-room to each limit, and its refusals, from the record."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...campaign import BookStep
    from ...ledger import Ledger
    from ...portfolio import PaperAccount
    from ...risk import RuleCheck

UNNAMED_SECTOR = "unknown"


def describe_exposures(ledger: Ledger, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the exposures of a step's book at its close, as shares of equity.

    `by_sector` and `by_run` have long, short, net and gross; of a run, or of a factor that none combined, what it asked
    for the next session.
    """
    from ...portfolio import PaperAccount

    inputs = json.loads(ledger.objects.get(body["inputs"]))
    sectors = {symbol: row[1] or UNNAMED_SECTOR for symbol, row in inputs["facts"].items()}
    account = PaperAccount.restore(body["account"])
    rows: dict[str, list[float]] = {}
    for symbol, weight in account.weights().items():
        rows.setdefault(sectors.get(symbol, UNNAMED_SECTOR), []).append(weight)
    by_sector = {name: _add_sides(weights) for name, weights in sorted(rows.items())}
    return {
        **_add_sides(list(account.weights().values())),
        "cash": account.cash,
        "by_sector": by_sector,
        "by_run": {run: _add_sides(list(part.values())) for run, part in sorted(inputs["parts"].items())},
        "positions": list(_list_positions(account, body, sectors)),
    }


def _add_sides(weights: list[float]) -> dict[str, float]:
    long, short = (math.fsum(max(side * weight, 0.0) for weight in weights) for side in (1, -1))
    return {"long": long, "short": short, "net": long - short, "gross": long + short}


def _list_positions(
    account: PaperAccount, body: Mapping[str, Any], sectors: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield each position, the largest first, with the target that the gate was asked for, and its answer.

    `target` is None where nothing was asked, so that the position stays.
    """
    from ...risk import UNITS_PER_EQUITY

    rulings = {ruling["asset"]: ruling["approved"] for ruling in body["decision"]["rulings"]}
    weights = account.weights()
    for symbol in sorted(weights, key=lambda name: (-abs(weights[name]), name)):
        one, asked = account.holdings[symbol], body["asked"].get(symbol)
        yield {
            "symbol": symbol,
            "sector": sectors.get(symbol, UNNAMED_SECTOR),
            "weight": weights[symbol],
            "shares": one.shares,
            "value": one.value,
            "target": None if asked is None else asked / UNITS_PER_EQUITY,
            "approved": rulings.get(symbol),
        }


def list_limits(one: BookStep) -> list[dict[str, Any]]:
    """Return each rule of a step's decision: the value nearest to its limit, that limit, and what it refused.

    Rules on the book and on totals (`whole`) give the book once all that was approved is traded. A rule on single
    signals gives its worst signal that it binds; one that bound none is left out. `used` is the share of the limit,
    None where the value is unknown or the limit is none or 0.
    """
    from ...risk import RULES, read_checks

    whole = {check["rule"]: _restore(check) for check in one.decision["book"]}
    worst: dict[str, tuple[RuleCheck, str]] = {}
    refused: dict[str, int] = {}
    for ruling in one.decision["rulings"]:
        for check in read_checks(one.decision, ruling):
            if not check.binds:
                continue
            refused[check.rule] = refused.get(check.rule, 0) + (not check.passed)
            if check.rule not in worst or _rank(check) > _rank(worst[check.rule][0]):
                worst[check.rule] = check, str(ruling["asset"])
    rows = []
    for rule in RULES:
        found = (whole[rule], "") if rule in whole else worst.get(rule)
        if found is not None:
            rows.append(_tell_limit(*found, refused.get(rule, 0), rule in whole))
    return rows


def _rank(check: RuleCheck) -> tuple[bool, bool, int]:
    return not check.passed, check.actual is None, abs(check.actual or 0)


def _restore(check: Mapping[str, Any]) -> RuleCheck:
    from ...risk import RuleCheck

    return RuleCheck(**check)


def _tell_limit(check: RuleCheck, symbol: str, refused: int, whole: bool) -> dict[str, Any]:
    from ...campaign.what_if import tell_check

    told = tell_check(check)
    known = told["actual"] is not None and told["limit"]
    return {
        **told,
        "passed": check.passed,
        "used": abs(told["actual"]) / told["limit"] if known else None,
        "symbol": symbol,
        "refused": refused,
        "whole": whole,
    }


def format_value(rule: str, value: float | None) -> str:
    """Return the value of a rule as text; the state of trading by its name."""
    from ...risk import MODES

    if value is None:
        return "unknown"
    return MODES[int(value)] if rule == "trading_state" else f"{round(value, 4):,.10g}"


def format_limit(rule: str, value: float | None) -> str:
    """Return the limit of a rule as text."""
    return "none" if value is None else format_value(rule, value)


def list_refused(one: BookStep) -> list[dict[str, Any]]:
    """Return each refused target of a step with every rule that refused it: actual value, limit, unit."""
    from ...campaign.what_if import tell_check
    from ...risk import UNITS_PER_EQUITY, read_checks

    weights = one.account.weights()
    rows = []
    for ruling in one.decision["rulings"]:
        if ruling["approved"]:
            continue
        asked = ruling["signal"].get("target_e8")
        checks = [check for check in read_checks(one.decision, ruling) if check.binds and not check.passed]
        rows.append(
            {
                "symbol": ruling["asset"],
                "held": weights.get(ruling["asset"], 0.0),
                "weight": asked / UNITS_PER_EQUITY if isinstance(asked, int) else None,
                "rules": [tell_check(check) for check in checks],
            }
        )
    return rows
