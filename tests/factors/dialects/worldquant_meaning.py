"""What the formulas of the WorldQuant paper mean, slow and obvious: numpy on the formula as it is written.

Nothing here knows of the rules that translate. Each step is rounded to float32, as the engine stores it. Where two
names are almost equal, the last digit decides which ranks higher; to know such cells, a formula is computed again with
noise in the last digit of each step.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from alphaloom.factors.language.syntax import Syntax
from alphaloom.market import Panel

Values = NDArray[np.float64]
Windows = NDArray[np.float64]
"""``[T, N, d]``: for each day and name the last d values, the newest last."""


def windows(x: Values, days: int) -> Windows:
    before = np.full((days - 1, x.shape[1]), np.nan)
    return sliding_window_view(np.vstack([before, x]), days, axis=0)


def whole(answer: Values, *seen: Windows) -> Values:
    """Keep an answer only where all of the window was there."""
    missing = np.zeros(answer.shape, bool)
    for each in seen:
        missing |= np.isnan(each).any(axis=-1)
    return np.where(missing, np.nan, answer)


def covariance(x: Values, y: Values, days: int) -> Values:
    a, b = windows(x, days), windows(y, days)
    product = (a - a.mean(axis=-1, keepdims=True)) * (b - b.mean(axis=-1, keepdims=True))
    return np.asarray(product.sum(axis=-1) / (days - 1))


def correlation(x: Values, y: Values, days: int) -> Values:
    a, b = windows(x, days), windows(y, days)
    a, b = a - a.mean(axis=-1, keepdims=True), b - b.mean(axis=-1, keepdims=True)
    spread = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    flat = (np.ptp(windows(x, days), axis=-1) == 0) | (np.ptp(windows(y, days), axis=-1) == 0)
    return np.where(flat, np.nan, np.clip((a * b).sum(axis=-1) / spread, -1, 1))


def days_since(x: Values, days: int, place: Callable[..., NDArray[np.intp]]) -> Values:
    seen = windows(x, days)
    return whole(np.asarray(days - 1 - place(seen, axis=-1), float), seen)


def place_in_window(x: Values, days: int) -> Values:
    seen = windows(x, days)
    now = seen[..., -1:]
    return whole(((seen < now).sum(axis=-1) + ((seen == now).sum(axis=-1) + 1) / 2) / days, seen)


def faded(x: Values, days: int) -> Values:
    weights = np.arange(1.0, days + 1)
    return np.asarray((windows(x, days) * (weights / weights.sum())).sum(axis=-1))


def delayed(x: Values, days: int) -> Values:
    return np.vstack([np.full((days, x.shape[1]), np.nan), x])[: len(x)]


ROLLING: Mapping[str, Callable[[Values, int], Values]] = {
    "delay": delayed,
    "delta": lambda x, d: x - delayed(x, d),
    "sum": lambda x, d: np.asarray(windows(x, d).sum(axis=-1)),
    "product": lambda x, d: np.asarray(windows(x, d).prod(axis=-1)),
    "stddev": lambda x, d: np.asarray(windows(x, d).std(axis=-1, ddof=1)),
    "ts_min": lambda x, d: np.asarray(windows(x, d).min(axis=-1)),
    "ts_max": lambda x, d: np.asarray(windows(x, d).max(axis=-1)),
    "ts_argmin": lambda x, d: days_since(x, d, np.argmin),
    "ts_argmax": lambda x, d: days_since(x, d, np.argmax),
    "ts_rank": place_in_window,
    "decay_linear": faded,
}
PAIRED: Mapping[str, Callable[[Values, Values, int], Values]] = {
    "correlation": correlation,
    "covariance": covariance,
}


def answered(truth: NDArray[np.bool_], *known: Values) -> Values:
    return np.where(np.isnan(sum(known)), np.nan, truth)


CELLS: Mapping[str, Callable[..., Values]] = {
    "add": lambda *terms: sum(terms),
    "sub": lambda x, y: x - y,
    "mul": lambda *terms: math.prod(terms),
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "power": lambda x, a: np.where(np.isnan(x + a), np.nan, np.power(x, a)),
    "signedpower": lambda x, a: np.where(np.isnan(x + a), np.nan, np.sign(x) * np.abs(x) ** a),
    "abs": np.abs,
    "log": np.log,
    "sign": np.sign,
    "min": np.minimum,
    "max": np.maximum,
    "lt": lambda x, y: answered(x < y, x, y),
    "gt": lambda x, y: answered(x > y, x, y),
    "eq": lambda x, y: answered(x == y, x, y),
    "and": lambda *all_of: answered(np.logical_and.reduce(all_of), *all_of),
    "or": lambda *any_of: answered(np.logical_or.reduce(any_of), *any_of),
    "where": lambda c, x, y: np.where(np.isnan(c), np.nan, np.where(c != 0, x, y)),
}


ROUNDED = ("add", "sub", "mul", "div", "power", "signedpower", "log", "delta", "sum", "product", "stddev",
           "decay_linear", "correlation", "covariance", "scale", "indneutralize")  # fmt: skip  # a table
"""What computes a number with a last digit; the rest choose or count."""


def last_digits(x: Values, rng: np.random.Generator) -> Values:
    """Draw errors as large as those of a computation in float32; of a difference, also beside zero."""
    size = 1e-6 * np.abs(x) + 1e-9 * np.nan_to_num(np.nanmean(np.abs(x)))
    return np.asarray(size * rng.uniform(-1, 1, x.shape))


class Meaning:
    """Compute formulas on one panel, with noise in the last digits where a generator is given."""

    def __init__(self, panel: Panel, groups: Mapping[str, str], noise: np.random.Generator | None = None) -> None:
        self.panel, self.groups, self.noise = panel, groups, noise

    def of(self, piece: Syntax) -> Values:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of means of nothing
            found = self._of(piece)
            if self.noise is not None and piece.text.lower() in ROUNDED:
                found = found + last_digits(found, self.noise)
            found = np.where(np.abs(found) <= np.finfo(np.float32).max, found, np.nan)
        return found.astype(np.float32).astype(np.float64)

    def _of(self, piece: Syntax) -> Values:
        if piece.kind == "number":
            return np.full(self.panel.universe.shape, float(piece.text))
        if piece.kind == "name":
            return self._input(piece.text.lower())
        name, args = piece.text.lower(), piece.args
        last = args[-1]
        if name in ("min", "max") and last.kind == "number" and not piece.infix:
            name = f"ts_{name}"
        if name in ROLLING:
            return ROLLING[name](self.of(args[0]), math.floor(float(last.text)))
        if name in PAIRED:
            return PAIRED[name](self.of(args[0]), self.of(args[1]), math.floor(float(last.text)))
        if name == "indneutralize":
            return self._neutral(self.of(args[0]), last.text.lower().removeprefix("indclass."))
        if name in ("rank", "scale"):
            return self._across(name, self.of(args[0]), float(last.text) if len(args) > 1 else 1.0)
        return np.asarray(CELLS[name](*map(self.of, args)), float)

    def _input(self, name: str) -> Values:
        if name.startswith("adv"):
            money = self.panel.fields["amount"].astype(np.float32).astype(float)
            return np.asarray(windows(money, int(name.removeprefix("adv"))).mean(axis=-1))
        return np.asarray(self.panel.fields[name], float)

    def _across(self, name: str, x: Values, gross: float) -> Values:
        here = pd.DataFrame(np.where(self.panel.universe, x, np.nan))
        if name == "rank":
            return here.rank(axis=1, pct=True).to_numpy()
        return (here.mul(gross).div(here.abs().sum(axis=1), axis=0)).to_numpy()

    def _neutral(self, x: Values, level: str) -> Values:
        codes = np.asarray(self.panel.groups[self.groups[level]])
        here = pd.DataFrame(np.where(self.panel.universe, x, np.nan)).T
        apart = here - here.groupby(codes).transform("mean")
        return np.where(codes >= 0, apart.T.to_numpy(), np.nan)
