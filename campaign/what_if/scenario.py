"""Scenarios: the move of each held name, with what is assumed in words.

A move is a change of the price as a share of it, -1 for a loss of all. Four kinds: a crash of the market times each
name's beta; a month of the panel, each name's own return; a change of a column that is one value a day, such as a
yield, times each name's sensitivity; and moves that a person gives.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...evidence.scoring import measure_exposures
from ...ledger import Ledger
from ...market import Panel
from ...risk import RiskError
from ..facts import READ_DAYS, name_sector
from ..windows import find_windows, refuse_unpaid_days

CRASH: Final = -0.2
"""Move of the market in a crash."""
MARKET_BETA: Final = 1.0
"""Beta of a name whose own is not known."""
SENSITIVITY_DAYS: Final = 250
MIN_SENSITIVITY_DAYS: Final = 60
"""Daily returns that a sensitivity needs."""
CLEAR_T: Final = 2.0
"""Size of a t below which a sensitivity may be chance."""
MIN_MONTH_SHARE: Final = 0.5
"""Share of a month's days on which a name must have a return, for the month to be its own."""
EVERY: Final = "*"
"""Stands for every other name in a table of moves."""


@dataclass(frozen=True)
class BookScenario:
    """Moves of names, and the assumptions behind them in plain words.

    Attributes
    ----------
    title
        The scenario in a line.
    moves
        Change of each name's price as a share of it, at least -1.
    notes
        Assumptions, and how many names were filled in.
    """

    title: str
    moves: Mapping[str, float]
    notes: tuple[str, ...]


def make_crash(panel: Panel, names: Sequence[str]) -> BookScenario:
    """Return a fall of the market by a fifth, times each name's beta at the panel's last day."""
    rows = panel.rows(max(panel.days - READ_DAYS, 0), panel.days)
    beta = measure_exposures(rows).beta[-1]
    own = {name: float(beta[column]) for name, column in _find_columns(panel, names).items()}
    moves = {name: CRASH * (value if np.isfinite(value) else MARKET_BETA) for name, value in own.items()}
    unknown = sum(not np.isfinite(value) for value in own.values())
    assumed = (
        "Assumption: the market falls by 20 %, and each name by that times its beta. "
        "The beta is the slope of its last 120 daily returns on the mean return of the universe; "
        "in a crash betas and correlations differ from those of calm days."
    )
    notes = [assumed]
    if unknown:
        notes.append(f"{unknown} of {len(own)} names have no beta: {MARKET_BETA:g} is assumed.")
    return _limit_losses("crash: the market falls by 20 %", moves, notes)


def make_month(
    ledger: Ledger, panel: Panel, dataset: str, month: str, names: Sequence[str], evidence: str
) -> BookScenario:
    """Return each name's own return in a month of the panel; of a name without one the mean of its sector, or of all.

    Parameters
    ----------
    month
        Such as 2008-10.
    evidence
        Ids of what the book trades: they decide which protected windows were paid for.

    Raises
    ------
    RiskError
        The panel does not have the month, or its days belong to a window that nobody paid for.
    """
    months = panel.dates.astype("datetime64[M]").astype(str)
    rows = np.flatnonzero(months == month)
    if not len(rows):
        raise _scenario_error(
            "The panel has no day of this month.", month, f"a month from {months[0]} to {months[-1]}", "no_month"
        )
    try:
        windows = find_windows(ledger, panel, dataset)
        refuse_unpaid_days(ledger, panel, dataset, rows.tolist(), evidence, windows)
    except RiskError as error:
        message = error.message.replace("a book that earns on them", "a loss of this book on them")
        raise RiskError(
            message,
            field="--scenario",
            got=month,
            allowed="another month",
            hint=error.hint,
            code=error.code,
            exit_code=1,
        ) from error
    returns = panel.fields["returns"][rows]
    known = np.count_nonzero(np.isfinite(returns), axis=0) >= MIN_MONTH_SHARE * len(rows)
    own = np.where(known, np.nanprod(1.0 + returns, axis=0) - 1.0, np.nan)
    moves, counts = _fill_in(panel, names, own)
    notes = [
        f"Assumption: each name moves as it did in {month}, from the close before the month to its last close.",
        _count_filled("have no return in it", counts, len(moves)),
    ]
    return _limit_losses(f"{month} again ({len(rows)} days)", moves, notes)


def make_field_move(panel: Panel, field: str, change: float, names: Sequence[str]) -> BookScenario:
    """Return a change of a column of the panel, times each name's sensitivity to it.

    The sensitivity is the slope of a name's last 250 daily returns on the changes of the column on those days.

    Raises
    ------
    RiskError
        The panel lacks the column, or it differs by symbol, or it does not change.
    """
    rows = panel.rows(max(panel.days - SENSITIVITY_DAYS - 1, 0), panel.days)
    moved = np.diff(_read_daily_value(rows, field))
    if not np.count_nonzero(np.nan_to_num(moved)):
        raise _scenario_error(
            f"{field} does not change on the last {SENSITIVITY_DAYS} days.", field, "a column that changes", "field"
        )
    slopes, scores = _regress(rows.fields["returns"][1:], moved)
    held = list(_find_columns(panel, names).values())
    size = np.abs(scores[held])
    median = float(np.median(size[np.isfinite(size)])) if np.isfinite(size).any() else float("nan")
    moves, counts = _fill_in(panel, names, slopes * change)
    weak = "" if median >= CLEAR_T else ": most of these sensitivities may be chance"
    assumed = (
        f"Assumption: each name moves by its sensitivity to {field} times {change:+g}, in the unit of the column. The "
        f"sensitivity is the slope of its last {SENSITIVITY_DAYS} daily returns on the changes of {field}."
    )
    notes = [
        assumed,
        f"The median name's |t| is {median:.1f}{weak}." if np.isfinite(median) else "",
        _count_filled(f"have fewer than {MIN_SENSITIVITY_DAYS} returns", counts, len(moves)),
    ]
    return _limit_losses(f"{field} {change:+g}", moves, notes)


def make_given(panel: Panel, given: Mapping[tuple[str, str], float], names: Sequence[str], source: str) -> BookScenario:
    """Return moves that a person gives, by ("symbol", name) or ("sector", name); the symbol goes before its sector.

    ("symbol", "*") is every other name. A name that nothing names does not move.
    """
    moves, still = {}, 0
    for name, column in _find_columns(panel, names).items():
        keys = (("symbol", name), ("sector", name_sector(panel, column)), ("symbol", EVERY))
        found = [given[key] for key in keys if key in given]
        still += not found
        moves[name] = found[0] if found else 0.0
    notes = ["Assumption: names move as the file says."]
    if still:
        notes.append(f"{still} of {len(moves)} held names are not in the file: they do not move.")
    return _limit_losses(f"moves of {source}", moves, notes)


def _find_columns(panel: Panel, names: Sequence[str]) -> dict[str, int]:
    """Return the column of each name that the panel has."""
    columns = {symbol: column for column, symbol in enumerate(panel.symbols)}
    return {name: columns[name] for name in names if name in columns}


def _fill_in(panel: Panel, names: Sequence[str], own: NDArray[np.float64]) -> tuple[dict[str, float], tuple[int, int]]:
    """Return each name's own value, else its sector's mean, else the mean of all; and how many took each mean."""
    sectors = [name_sector(panel, column) for column in range(panel.names)]
    known = [(sector, value) for sector, value in zip(sectors, own, strict=True) if np.isfinite(value)]
    if not known:
        raise _scenario_error("No name has a value in this scenario.", "no returns", "a panel with returns", "no_moves")
    market = float(np.mean([value for _, value in known]))
    moves, by_sector, by_market = {}, 0, 0
    for name, column in _find_columns(panel, names).items():
        if np.isfinite(own[column]):
            moves[name] = float(own[column])
            continue
        peers = [value for sector, value in known if sector and sector == sectors[column]]
        moves[name] = float(np.mean(peers)) if peers else market
        by_sector, by_market = by_sector + bool(peers), by_market + (not peers)
    return moves, (by_sector, by_market)


def _count_filled(lack: str, counts: tuple[int, int], whole: int) -> str:
    """Return in words how many names were filled in; empty for none."""
    if not any(counts):
        return ""
    return (
        f"Filled in: {sum(counts)} of {whole} held names {lack}; {counts[0]} take the mean of their sector, "
        f"{counts[1]} that of the market."
    )


def _limit_losses(title: str, moves: Mapping[str, float], notes: Sequence[str]) -> BookScenario:
    """Return a scenario in which no price falls by more than all of it."""
    beyond = sum(move < -1.0 for move in moves.values())
    cut = [f"{beyond} names would fall by more than all of their price: by all of it is assumed."] if beyond else []
    limited = {name: max(move, -1.0) for name, move in moves.items()}
    return BookScenario(title, limited, tuple(note for note in (*notes, *cut) if note))


def _read_daily_value(panel: Panel, field: str) -> NDArray[np.float64]:
    """Return the one value a day of a column, ``[T]``, NaN on a day without one."""
    values = panel.fields.get(field)
    if values is None:
        raise _scenario_error(
            f"The panel has no column {field}.",
            field,
            f"one of {', '.join(panel.fields)}",
            "no_field",
            "Rates are given as a column of the panel with the day's value in each row, such as yield_10y in percent; "
            'then --scenario "yield_10y +2.0".',
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a day without a value: NaN is meant
        low: NDArray[np.float64] = np.nanmin(values, axis=1)
        high: NDArray[np.float64] = np.nanmax(values, axis=1)
    if (differing := np.flatnonzero(high > low)).size:
        raise _scenario_error(
            f"{field} differs by symbol, so it has no one change.",
            f"{low[differing[0]]:g} to {high[differing[0]]:g} on {panel.dates[differing[0]]}",
            "a column with one value a day for all symbols, such as a yield in percent",
            "field",
            "Add such a column to the panel, or give moves in a file: symbol or sector, move.",
        )
    return low


def _regress(returns: NDArray[np.float64], moved: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return the slope of each column on a series and its t, ``[N]``; NaN with too few days or without a change."""
    there = np.isfinite(returns) & np.isfinite(moved)[:, None]
    days = there.sum(axis=0)
    safe = np.maximum(days, 1)
    x, y = np.where(there, moved[:, None], 0.0), np.where(there, returns, 0.0)
    x, y = np.where(there, x - x.sum(axis=0) / safe, 0.0), np.where(there, y - y.sum(axis=0) / safe, 0.0)
    spread = (x**2).sum(axis=0)
    known = (days >= MIN_SENSITIVITY_DAYS) & (spread > 0)
    slope = np.where(known, (x * y).sum(axis=0) / np.where(known, spread, 1.0), np.nan)
    noise = ((y - slope * x) ** 2).sum(axis=0) / np.maximum(days - 2, 1)
    error = np.sqrt(noise / np.where(known, spread, 1.0))
    score = np.where(known & (error > 0), slope / np.where(error > 0, error, 1.0), np.nan)
    return slope, score


def _scenario_error(message: str, got: object, allowed: str, code: str, hint: str = "") -> RiskError:
    return RiskError(message, field="--scenario", got=got, allowed=allowed, code=code, hint=hint)
