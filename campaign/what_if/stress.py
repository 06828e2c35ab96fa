"""A paper book under a scenario: what it loses and where, which limits bind afterwards, and how long selling takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ...market import Panel
from ...portfolio import OTHER, divide_profit
from ...risk import UNITS_PER_EQUITY, VOLUME_PARTS, DayRolled, Policy, Priced, RuleCheck, apply, decide
from ..facts import SymbolFacts, read_facts
from ..trade import next_trading_day
from .held_book import HeldBook
from .scenario import BookScenario

MOST_SOLD: Final = 0.9
"""Share of a book whose liquidation is timed."""
ONE_SESSION: Final = "The limits read all moves as those of one session."
UNPRICED: Final = "are not in the panel: they do not move"
NO_SECTOR: Final = "unknown"


@dataclass(frozen=True)
class NameLoss:
    """What one position loses.

    Attributes
    ----------
    symbol, sector
        The name and its sector; `NO_SECTOR` where it is not known.
    weight
        The position as a share of equity, negative for short.
    move, loss
        Change of its price as a share, and the money that is lost; negative where it earns.
    days
        Days that selling it takes, at a tenth of its usual volume; None where that is not known.
    """

    symbol: str
    sector: str
    weight: float
    move: float
    loss: float
    days: float | None


@dataclass(frozen=True)
class BookStress:
    """A book under a scenario. Money is in the prices' currency; a negative loss is a gain.

    Attributes
    ----------
    scenario
        The scenario, with what is assumed.
    day
        The close at which the book is held.
    equity, loss
        Equity before, and what is lost of it.
    names
        Each position, the largest loss first.
    by_sector, by_part
        The same loss by sector, and by run or factor for which the position is held (`portfolio.OTHER` for none).
    before, after
        The rules on the book and on totals, before and afterwards.
    unsold
        Names whose usual volume is not known.
    most_days
        Days after which nine tenths of the positions are sold at a tenth of their usual volume; None where names
        without a known volume are too much of the book.
    """

    scenario: BookScenario
    day: str
    equity: float
    loss: float
    names: tuple[NameLoss, ...]
    by_sector: Mapping[str, float]
    by_part: Mapping[str, float]
    before: tuple[RuleCheck, ...]
    after: tuple[RuleCheck, ...]
    unsold: tuple[str, ...]
    most_days: int | None

    @property
    def binding(self) -> tuple[tuple[RuleCheck, bool], ...]:
        """Return the rules that fail afterwards, and whether each held before."""
        return tuple(
            (late, early.passed) for early, late in zip(self.before, self.after, strict=True) if not late.passed
        )


def stress_book(held: HeldBook, panel: Panel, policy: Policy, scenario: BookScenario) -> BookStress:
    """Move the positions of a book as a scenario says; nothing is recorded.

    Parameters
    ----------
    panel
        Up to the day of the book's last step. Usual volumes are as they are there, before the scenario.
    """
    account = held.account
    facts = read_facts(panel, {*account.holdings}, policy.style_cap_bp is not None) if account.holdings else {}
    weights, lost = account.weights(), len(account.holdings.keys() - scenario.moves.keys())
    notes = [*scenario.notes, *([f"{lost} held names {UNPRICED}."] if lost else []), ONE_SESSION]
    names = []
    for symbol, holding in account.holdings.items():
        one, move = facts.get(symbol), scenario.moves.get(symbol, 0.0)
        sector = (one.sector if one else "") or NO_SECTOR
        loss = 0.0 - holding.value * move
        days = _count_days(abs(holding.value), one)
        names.append(NameLoss(symbol, sector, weights[symbol], move, loss, days))
    losses = {one.symbol: one.loss for one in names}
    before, after = _compare_rules(held, panel, policy, facts, scenario)
    sizes = {symbol: abs(holding.value) for symbol, holding in account.holdings.items()}
    return BookStress(
        replace(scenario, notes=tuple(notes)),
        held.day,
        account.equity,
        math.fsum(losses.values()),
        tuple(sorted(names, key=lambda one: (-one.loss, one.symbol))),
        _add_by((one.sector, one.loss) for one in names),
        _sort_sums({part: loss for part, loss in divide_profit(losses, held.parts).items() if loss or part != OTHER}),
        before,
        after,
        tuple(sorted(one.symbol for one in names if one.days is None)),
        find_sold_day(sizes, {one.symbol: one.days for one in names}),
    )


def _compare_rules(
    held: HeldBook, panel: Panel, policy: Policy, facts: Mapping[str, SymbolFacts], scenario: BookScenario
) -> tuple[tuple[RuleCheck, ...], tuple[RuleCheck, ...]]:
    """Return the rules on the book and on totals at the next session, before and after the moves.

    The moves come at once, but events one by one. Gains come first, so that equity is above 0 as long as its end is;
    a highest equity that was reached only in between does not count.
    """
    day = next_trading_day(panel.dates, panel.calendar)
    start = apply(held.state(facts, panel), DayRolled(day))
    moves = {name: move for name, move in scenario.moves.items() if move and name in start.positions}
    end = start
    for symbol in sorted(moves, key=lambda name: (-start.positions[name] * moves[name], name)):
        end = apply(end, Priced(symbol, day, round(moves[symbol] * UNITS_PER_EQUITY)))
    end = replace(end, high_water=max(start.high_water, end.equity))
    before, after = (decide([], state, policy, day, {}).book for state in (start, end))
    return before, after


def _add_by(rows: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the sum of each key, the largest first."""
    groups: dict[str, list[float]] = {}
    for key, value in rows:
        groups.setdefault(key, []).append(value)
    return _sort_sums({key: math.fsum(values) for key, values in groups.items()})


def _sort_sums(sums: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(sums.items(), key=lambda one: (-one[1], one[0])))


def _count_days(size: float, facts: SymbolFacts | None) -> float | None:
    usual = facts.usual_value if facts else None
    return size * VOLUME_PARTS / usual if usual else None


def find_sold_day(sizes: Mapping[str, float], days: Mapping[str, float | None]) -> int | None:
    """Return the whole day on which nine tenths of a book are sold, each name by equal parts over its own days.

    Parameters
    ----------
    sizes
        Money of each position, without sign.
    days
        Days that selling each takes; None for a name that is not sold.
    """
    whole = math.fsum(sizes.values())
    able = {name: length for name, length in days.items() if length is not None}
    if math.fsum(sizes[name] for name in able) < MOST_SOLD * whole:
        return None

    def sold(day: int) -> float:
        return math.fsum(sizes[name] * (min(day / length, 1.0) if length else 1.0) for name, length in able.items())

    first, last = 0, math.ceil(max(able.values(), default=0.0))
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if sold(middle) >= MOST_SOLD * whole else (middle + 1, last)
    return first
