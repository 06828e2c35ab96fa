"""What AlphaAgent's and QuantaAlpha's function library computes, in pandas on the formula as it is written.

Dates are rows and instruments columns. Nothing here knows of the rules that translate.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from alphaloom.factors.language.syntax import Syntax
from alphaloom.market import Panel

Table = pd.DataFrame
Window = NDArray[np.float64]


def applied(x: Table, days: int, answer: Callable[[Window], float], least: int = 1) -> Table:
    return x.rolling(days, min_periods=least).apply(answer, raw=True)


def pairs(y: Table, x: Table, days: int, answer: Callable[[Window, Window], float]) -> Table:
    """Apply an answer to whole windows of two tables whose missing values are zeros."""
    out = pd.DataFrame(np.nan, y.index, y.columns)
    for day in range(days - 1, len(y)):
        for name in y.columns:
            part = slice(day - days + 1, day + 1)
            out.loc[y.index[day], name] = answer(y[name].fillna(0).to_numpy()[part], x[name].fillna(0).to_numpy()[part])
    return out


def line(y: Window, x: Window) -> Window:
    return np.asarray(np.linalg.lstsq(np.vstack([x, np.ones(len(x))]).T, y, rcond=None)[0], float)


def left_over(y: Window, x: Window) -> float:
    slope, level = line(y, x)
    return float(y[-1] - slope * x[-1] - level)


def clock(like: Table) -> Table:
    """Return days since the first: a regression on them and on 1 to n have one slope and one residual."""
    days = np.arange(len(like), dtype=float)
    return pd.DataFrame({name: days for name in like.columns}, index=like.index)


def with_clock(window: Window) -> float:
    own, time = window - window.mean(), np.arange(len(window)) - (len(window) - 1) / 2
    return float((own * time).sum() / np.sqrt((own**2).sum() * (time**2).sum()))


def linear(days: int) -> Callable[[Window], float]:
    weights = np.arange(1, days + 1) / np.arange(1, days + 1).sum()
    return lambda window: float((window * weights[: len(window)]).sum())


def tenths(days: int) -> Callable[[Window], float]:
    weights = np.array([0.9**age for age in range(days)][::-1])
    return lambda window: float((window * weights[: len(window)]).sum() / weights[: len(window)].sum())


def endless(x: Table, days: int) -> Table:
    return x.ewm(span=days, min_periods=1).mean()


def strength(x: Table, days: int = 14) -> Table:
    change = x.diff()
    up, down = (change > 0) * change, (change < 0) * change.abs()
    return 100 - 100 / (1 + endless(up, days) / endless(down, days))


def biased(moment: Callable[..., Any], least: int) -> Callable[[Table, int], Table]:
    def answer(window: Window) -> float:
        there = window[~np.isnan(window)]
        return float(moment(there)) if len(there) >= least else np.nan

    return lambda x, days: applied(x, days, answer, least)


def rolling(x: Table, days: int) -> Any:
    return x.rolling(days, min_periods=1)


def days_since(choose: Callable[[Window], np.intp], least: int = 0) -> Callable[[Table, int], Table]:
    def found(x: Table, days: int = 5) -> Table:
        return applied(x, days, lambda window: float(len(window) - choose(window) - 1 + least))

    return found


WORDS: Mapping[str, Callable[..., Table]] = {
    "ABS": lambda x: x.abs(),
    "SIGN": lambda x: x.apply(np.sign),
    "EXP": lambda x: x.apply(np.exp),
    "SQRT": lambda x: x.apply(np.sqrt),
    "LOG": lambda x: (x + 1).apply(np.log),
    "INV": lambda x: 1 / x,
    "POW": lambda x, n: x.pow(n),
    "MAX": lambda x, *more: np.maximum(x, more[0] if len(more) == 1 else np.maximum(*more)),
    "MIN": lambda x, *more: np.minimum(x, more[0] if len(more) == 1 else np.minimum(*more)),
    "RANK": lambda x: x.rank(axis=1, pct=True),
    "ZSCORE": lambda x: x.sub(x.mean(axis=1), axis=0).div(x.std(axis=1), axis=0),
    "SCALE": lambda x, a=1: (x * a).div(x.abs().sum(axis=1), axis=0),
    "MEAN": lambda x: x.mul(0).fillna(0).add(x.mean(axis=1), axis=0),
    "STD": lambda x: x.mul(0).fillna(0).add(x.std(axis=1), axis=0),
    "MEDIAN": lambda x: x.mul(0).fillna(0).add(x.median(axis=1), axis=0),
    "FLOOR": lambda x: x.apply(np.floor),
    "DELAY": lambda x, d=1: x.shift(d),
    "DELTA": lambda x, d=1: x.diff(d),
    "TS_PCTCHANGE": lambda x, d=1: x.pct_change(d, fill_method=None).fillna(0),
    "TS_MEAN": lambda x, d=5: rolling(x, d).mean(),
    "TS_SUM": lambda x, d=5: rolling(x, d).sum(),
    "SUMAC": lambda x, d=10: rolling(x, d).sum(),
    "TS_MIN": lambda x, d=5: rolling(x, d).min(),
    "TS_MAX": lambda x, d=5: rolling(x, d).max(),
    "TS_MEDIAN": lambda x, d=5: rolling(x, d).median(),
    "TS_RANK": lambda x, d=5: rolling(x, d).rank(pct=True),
    "TS_STD": lambda x, d=20: rolling(x, d).std(),
    "TS_VAR": lambda x, d=5, n=1: rolling(x, d).var(ddof=n),
    "TS_ZSCORE": lambda x, d=5: (x - rolling(x, d).mean()) / rolling(x, d).std(),
    "TS_QUANTILE": lambda x, d=5, q=0.5: rolling(x, d).quantile(q),
    "PERCENTILE": lambda x, q, d: rolling(x, d).quantile(q),
    "TS_CORR": lambda x, y, d=5: x.rolling(d, min_periods=2).corr(y),
    "TS_COVARIANCE": lambda x, y, d=5: x.rolling(d, min_periods=2).cov(y),
    "TS_SKEW": biased(stats.skew, 3),
    "TS_KURT": biased(stats.kurtosis, 4),
    "TS_ARGMAX": days_since(np.argmax),
    "TS_ARGMIN": days_since(np.argmin),
    "HIGHDAY": days_since(np.argmax, 1),
    "LOWDAY": days_since(np.argmin, 1),
    "PROD": lambda x, d=5: applied(x, d, np.prod),
    "COUNT": lambda c, d=20: rolling(c.astype(float), d).sum(),
    "SUMIF": lambda x, d, c: rolling(x * c, d).sum(),
    "FILTER": lambda x, c: x * c,
    "DECAYLINEAR": lambda x, d=5: applied(x, d, linear(d)),
    "WMA": lambda x, d=20: applied(x, d, tenths(d)),
    "EMA": endless,
    "SMA": lambda x, m, n=None: rolling(x, m).mean() if n is None else x.ewm(alpha=n / m).mean(),
    "REGBETA": lambda y, x, d=5: pairs(y, x, d, lambda a, b: float(line(a, b)[0])),
    "REGRESI": lambda y, x, d=5: pairs(y, x, d, left_over),
    "MACD": lambda x, short=12, long=26: endless(x, short) - endless(x, long),
    "RSI": strength,
    "BB_MIDDLE": lambda x, d: rolling(x, d).mean(),
    "BB_UPPER": lambda x, d: rolling(x, d).mean() + rolling(x, d).std(),
    "BB_LOWER": lambda x, d: rolling(x, d).mean() - rolling(x, d).std(),
}

SIGNS: Mapping[str, Callable[..., Any]] = {
    "add": lambda *terms: sum(terms[1:], terms[0]),
    "sub": operator.sub,
    "mul": lambda *terms: terms[0] * terms[1] if len(terms) == 2 else terms[0] * terms[1] * terms[2],
    "div": operator.truediv,
    "neg": operator.neg,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": lambda x, y: x.astype(bool) & y.astype(bool),
    "or": lambda x, y: x.astype(bool) | y.astype(bool),
}


class Meaning:
    """Compute formulas on one panel."""

    def __init__(self, panel: Panel) -> None:
        self.fields = {name: pd.DataFrame(values, columns=list(panel.symbols)) for name, values in panel.fields.items()}

    def of(self, piece: Syntax) -> Any:
        """Return a table, or a number where the formula is one."""
        if piece.kind == "number":
            return float(piece.text) if "." in piece.text or "e" in piece.text else int(piece.text)
        if piece.kind == "name":
            return self.fields[piece.text.removeprefix("$").replace("return", "returns")]
        if piece.text == "where":
            c, x, y = map(self.of, piece.args)
            return pd.DataFrame(np.where(c, x, y), c.index, c.columns)
        if piece.infix:
            return SIGNS[piece.text](*map(self.of, piece.args))
        first, *rest = piece.args
        if rest and rest[0].text == "SEQUENCE":
            return self._with_sequence(piece.text, self.of(first), self.of(rest[0].args[0]))
        with np.errstate(all="ignore"):
            return WORDS[piece.text](*map(self.of, piece.args))

    def _with_sequence(self, name: str, x: Table, days: int) -> Table:
        if name == "TS_CORR":
            return applied(x, days, with_clock, 2)
        return WORDS[name](x, clock(x), days)
