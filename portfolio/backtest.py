"""Backtest a combination: vectorbt places the orders, and plain arithmetic checks its result."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..evidence import BookUnavailable
from ..evidence.scoring import GROSS, TRADING_DAYS_PER_YEAR, Costs, annual_sharpe, sleeve_weights
from ..extras import install_hint
from ..factors import rank_rows
from ..market import Panel

Frame = NDArray[np.float64]
Series = NDArray[np.float64]

START_CASH: Final = 1e8
"""Cash at the start: large, so that no order is too small for vectorbt."""


@dataclass(frozen=True, eq=False)
class Book:
    """The result of a backtest after costs, valued at the opens at which it trades.

    Attributes
    ----------
    dates
        Days on which it traded or could have, ``[D]``.
    equity
        Value at each open after that day's trades and costs, ``[D]``; 1 is the cash at the start.
    daily_returns
        Change of equity from the previous open, ``[D]``, decimal, after trading and borrowing costs.
    sharpe, annual_return, max_drawdown
        Sharpe ratio annualised by the root of 252; compound return per year of 252 days; drawdown as a negative share
        of the highest equity.
    turnover_per_day
        Notional bought and sold, halved, over the gross of both sides; mean over days.
    costs_paid, borrow_paid
        Sums of the daily costs, as shares of equity.
    plain_sharpe, plain_annual_return, plain_max_difference
        The same backtest by weights times returns minus costs, without vectorbt, and the largest absolute difference
        between the two series of daily returns.
    """

    dates: NDArray[np.datetime64]
    equity: Series
    daily_returns: Series
    sharpe: float
    annual_return: float
    max_drawdown: float
    turnover_per_day: float
    costs_paid: float
    borrow_paid: float
    plain_sharpe: float
    plain_annual_return: float
    plain_max_difference: float

    @property
    def days(self) -> int:
        """Count the days."""
        return len(self.dates)

    @property
    def drawdown(self) -> Series:
        """Return equity over its highest value so far, minus 1, ``[D]``."""
        return self.equity / np.maximum.accumulate(np.maximum(self.equity, 1.0)) - 1.0


@dataclass(frozen=True, eq=False)
class _Orders:
    """Prices and target weights of each trading day, ``[D, N]``; a NaN target keeps the position."""

    price: Frame
    target: Frame


@dataclass(frozen=True, eq=False)
class _Path:
    """Daily return before borrow, cost, notional traded both ways and short notional, as shares of equity, ``[D]``."""

    returns: Series
    cost: Series
    traded: Series
    short: Series


def run_backtest(score: NDArray[np.floating[Any]], panel: Panel, *, costs: Costs, horizon: int, span: slice) -> Book:
    """Backtest a score as a long-short portfolio, day by day.

    Parameters
    ----------
    score
        Scores ``[T, N]``, known at the close of each row's day; NaN takes no position. Only rows of `span` are read.
    panel
        The panel of the score; open and close prices are used, in `span` only.
    costs
        Costs of trading and borrowing. Borrowing is charged on the short notional, outside vectorbt's account.
    horizon
        Number of sleeves: the target of a day is the mean of the last `horizon` days' equal-weighted top minus bottom
        quintile.
    span
        Rows of the panel, step 1, at least 3. The first score trades at the second row's open; the last never trades.

    Returns
    -------
    Book
        A name without an open keeps its position at its last close until it trades again; one that never trades again
        in `span` is sold at its last close, with costs.

    Raises
    ------
    BookUnavailable
        vectorbt is not installed.
    ValueError
        `span` has fewer than 3 rows.
    """
    rows = range(*span.indices(panel.days))
    if rows.step != 1 or len(rows) < 3:
        raise ValueError(f"span must be at least 3 rows in a row, got {span} of {panel.days} days")
    vectorbt = _import_vectorbt()
    cut = slice(rows.start, rows.stop)
    orders = _build_orders(
        np.asarray(score[cut], np.float32), panel.fields["open"][cut], panel.fields["close"][cut], horizon
    )
    plain = _account_plainly(orders, costs)
    traded = _read_returns(_simulate_by_vectorbt(vectorbt, orders, costs))
    return _build_book(panel.dates[cut][1:], traded, plain, costs)


def simulate_targets(weights: Frame, panel: Panel, *, costs: Costs, span: slice) -> Any:
    """Return a vectorbt `Portfolio` that trades given weights, as `run_backtest` trades those of a score.

    Parameters
    ----------
    weights
        Shares of equity ``[T, N]``, known at the close of each row's day; NaN keeps the position. Only rows of `span`
        are read.
    panel, costs, span
        As for `run_backtest`. Borrowing is not in vectorbt's account.

    Raises
    ------
    BookUnavailable
        vectorbt is not installed.
    """
    cut = slice(*span.indices(panel.days)[:2])
    orders = _order_targets(weights[cut], panel.fields["open"][cut], panel.fields["close"][cut])
    return _simulate_by_vectorbt(_import_vectorbt(), orders, costs, panel.dates[cut][1:], panel.symbols)


def target_weights(score: NDArray[np.floating[Any]], horizon: int) -> Frame:
    """Return the weights that a book should hold after the close of each day, as shares of equity.

    Parameters
    ----------
    score
        Scores ``[T, N]``; NaN takes no position.
    horizon
        Number of sleeves: the weights of a day are the mean of the last `horizon` days' equal-weighted top minus bottom
        quintile, so those of the last row need the last `horizon` rows only.

    Returns
    -------
    Frame
        ``[T, N]``, never NaN; each side sums to 1 once `horizon` sleeves are open. The backtest holds these weights
        from the next open on, and the risk gate is asked for those of the last row.
    """
    return sleeve_weights(rank_rows(np.ascontiguousarray(score, np.float32)), horizon)


def _build_orders(score: NDArray[np.float32], opens: Frame, closes: Frame, horizon: int) -> _Orders:
    """Return the price and target of every name on every day but the first."""
    return _order_targets(target_weights(score, horizon), opens, closes)


def _order_targets(weights: Frame, opens: Frame, closes: Frame) -> _Orders:
    """Return the price and target of every name on every day but the first, from the weights after each close."""
    target = weights[:-1]
    quoted = np.isfinite(opens) & (opens > 0)
    price = _carry_forward_prices(np.where(quoted, opens, np.nan), closes)
    is_listed = np.maximum.accumulate(quoted[::-1], axis=0)[::-1]
    is_delisting = ~is_listed & np.vstack([is_listed[:1], is_listed[:-1]])
    target = np.where(is_delisting[1:], 0.0, np.where(quoted[1:], target, np.nan))
    return _Orders(price[1:], target)


def _carry_forward_prices(opens: Frame, closes: Frame) -> Frame:
    """Fill missing opens with the last close before them, and with 1 before a name's first price."""
    days, names = opens.shape
    prices = np.empty((2 * days, names))
    prices[0::2] = opens
    prices[1::2] = np.where(closes > 0, closes, np.nan)
    row = np.where(np.isnan(prices), 0, np.arange(2 * days)[:, None])
    filled = np.take_along_axis(prices, np.maximum.accumulate(row, axis=0), axis=0)[0::2]
    return np.where(np.isnan(filled), 1.0, filled)


def _account_plainly(orders: _Orders, costs: Costs) -> _Path:
    """Account by weights times returns minus costs; weights drift with prices between the opens."""
    days, names = orders.price.shape
    path = _Path(*(np.zeros(days) for _ in range(4)))
    weights = np.zeros(names)
    for day in range(days):
        if day:
            moves = orders.price[day] / orders.price[day - 1] - 1.0
            path.returns[day] = weights @ moves
            weights = weights * (1.0 + moves) / (1.0 + path.returns[day])
        target = np.where(np.isnan(orders.target[day]), weights, orders.target[day])
        path.traded[day] = np.abs(target - weights).sum()
        path.cost[day] = path.traded[day] * costs.side
        path.short[day] = np.maximum(-target, 0.0).sum() / (1.0 - path.cost[day])
        path.returns[day] = (1.0 + path.returns[day]) * (1.0 - path.cost[day]) - 1.0
        weights = target / (1.0 - path.cost[day])
    return path


def _import_vectorbt() -> ModuleType:
    """Import vectorbt without the deprecation warnings of its plotting libraries."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logging.getLogger("matplotlib.font_manager").setLevel(logging.WARNING)  # it reports its font cache
            import vectorbt
    except ImportError as error:
        raise BookUnavailable(
            "the book backtest needs vectorbt, which is not installed", hint=install_hint("vectorbt")
        ) from error
    module: ModuleType = vectorbt
    return module


def _simulate_by_vectorbt(
    vectorbt: ModuleType,
    orders: _Orders,
    costs: Costs,
    dates: NDArray[np.datetime64] | None = None,
    symbols: Sequence[str] = (),
) -> Any:
    """Return the orders' vectorbt `Portfolio`, before borrowing costs; with `dates` its tables have them."""
    price: Any = orders.price
    if dates is not None:
        import pandas as pd

        price = pd.DataFrame(price, pd.DatetimeIndex(dates), list(symbols))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vectorbt.Portfolio.from_orders(
            close=price,
            size=orders.target,
            size_type="targetpercent",
            price=orders.price,
            fees=costs.side,
            init_cash=START_CASH,
            cash_sharing=True,
            group_by=True,
            call_seq="auto",
            freq="1D",
        )


def _read_returns(portfolio: Any) -> Series:
    """Return a portfolio's daily returns, ``[D]``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value: Series = np.asarray(portfolio.value(), dtype=np.float64).ravel()
    before: Series = np.append(START_CASH, value[:-1])
    return value / before - 1.0


def _build_book(dates: NDArray[np.datetime64], traded: Series, plain: _Path, costs: Costs) -> Book:
    """Subtract the borrowing costs of the position since the previous open, and summarise."""
    borrow = np.concatenate([[0.0], plain.short[:-1]]) * costs.borrow
    daily, check = traded - borrow, plain.returns - borrow
    equity = np.cumprod(1.0 + daily, dtype=np.float64)
    highest = np.maximum.accumulate(np.maximum(equity, 1.0))
    return Book(
        dates=dates,
        equity=equity,
        daily_returns=daily,
        sharpe=annual_sharpe(daily),
        annual_return=_compute_annual_return(daily),
        max_drawdown=float((equity / highest - 1.0).min()),
        turnover_per_day=float(plain.traded.mean()) / 2 / GROSS,
        costs_paid=float(plain.cost.sum()),
        borrow_paid=float(borrow.sum()),
        plain_sharpe=annual_sharpe(check),
        plain_annual_return=_compute_annual_return(check),
        plain_max_difference=float(np.abs(daily - check).max()),
    )


def _compute_annual_return(daily: Series) -> float:
    """Return the compound return per year; NaN after a total loss."""
    final = float(np.prod(1.0 + daily))
    return final ** (TRADING_DAYS_PER_YEAR / len(daily)) - 1.0 if final > 0 else math.nan
