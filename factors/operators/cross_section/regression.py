"""Regress the names of a day on some exposures: the residual of the least-squares regression.

The exposures are made orthogonal to each other one by one (Gram and Schmidt, twice, which is as exact as reflections),
and each is taken out of x in turn. No matrix of products is formed, which would lose digits by squaring.
"""

from __future__ import annotations

import math

import numpy as np

from ...kernels.cells import FLOAT32_EPSILON, NAN, Array, Members, Sums, finite, is_constant
from ...kernels.kernel_cache import kernel
from ...language.operator import MAX_TERMS, Prose, across
from ..reference import Values, is_flat

MIN_OWN_VARIANCE = 1e-10
"""An exposure is dropped if the exposures before it leave less than this share of its variance unexplained."""


@kernel
def _dot(a: Sums, b: Sums, count: int) -> float:
    """Return the scalar product, summed in four parts that the processor adds in parallel."""
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    fours = count - count % 4
    for i in range(0, fours, 4):
        p += a[i] * b[i]
        q += a[i + 1] * b[i + 1]
        r += a[i + 2] * b[i + 2]
        s += a[i + 3] * b[i + 3]
    for i in range(fours, count):
        p += a[i] * b[i]
    return (p + q) + (r + s)


@kernel
def _centre(a: Sums, count: int) -> tuple[float, float]:
    """Subtract the mean in place; return it with the sum of squares of the rest."""
    mean = 0.0
    for i in range(count):
        mean += a[i]
    mean /= count
    for i in range(count):
        a[i] -= mean
    return mean, _dot(a, a, count)


@kernel
def _take_out(a: Sums, unit: Sums, count: int) -> None:
    """Subtract the part of a that points along a vector of length 1."""
    along = _dot(a, unit, count)
    for i in range(count):
        a[i] -= along * unit[i]


@kernel
def _orthonormalise(units: Sums, count: int) -> int:
    """Make exposures centred and orthonormal in place; return the number of independent ones, which come first."""
    independent = 0
    for k in range(units.shape[0]):
        exposure = units[k]
        mean, whole = _centre(exposure, count)
        if is_constant(whole, mean, count):
            continue
        for before in range(2 * independent):  # twice: once leaves rounding noise
            _take_out(exposure, units[before % independent], count)
        own = _dot(exposure, exposure, count)
        if own > MIN_OWN_VARIANCE * whole:
            unit, length = units[independent], math.sqrt(own)
            for i in range(count):
                unit[i] = exposure[i] / length
            independent += 1
    return independent


@kernel
def _take_residual(x: Sums, units: Sums, count: int) -> int:
    """Replace x by its residual; return the number of names minus the number of parameters."""
    mean, squares = _centre(x, count)
    level = squares / count + mean * mean
    independent = _orthonormalise(units, count)
    for before in range(2 * independent):
        _take_out(x, units[before % independent], count)
    # An exact fit, as far as float32 can tell.
    if _dot(x, x, count) <= count * level * FLOAT32_EPSILON * FLOAT32_EPSILON:
        for i in range(count):
            x[i] = 0.0
    return count - 1 - independent


@kernel
def residuals(out: Array, values: Array, exposures: Array, member: Members) -> None:
    """Regress some rows, each by itself; `exposures` is ``[days, exposures, names]``."""
    names = out.shape[1]
    x, units, place = np.empty(names), np.empty((exposures.shape[1], names)), np.empty(names, np.int64)
    for day in range(out.shape[0]):
        row, day_exposures, o = values[day], exposures[day], out[day]
        count = 0
        for j in range(names):
            o[j] = NAN
            there = member[day, j] and row[j] == row[j]
            for k in range(day_exposures.shape[0]):
                there = there and day_exposures[k, j] == day_exposures[k, j]
            if there:
                x[count], place[count] = np.float64(row[j]), j
                for k in range(day_exposures.shape[0]):
                    units[k, count] = np.float64(day_exposures[k, j])
                count += 1
        if count and _take_residual(x, units, count) > 0:
            for i in range(count):
                o[place[i]] = finite(x[i])


def regress_out(out: Array, values: Array, exposures: tuple[Array, ...], member: Members, lo: int, hi: int) -> None:
    """Regress each day on a constant and the exposures, and keep the residual."""
    stacked = np.stack([exposure[lo:hi] for exposure in exposures], axis=1)
    residuals(out[lo:hi], values[lo:hi], stacked, member[lo:hi])


def _residual_reference(x: Values, *exposures: Values) -> Values:
    """Solve by numpy; constant exposures, and those explained by earlier ones, are left out."""
    design = [np.ones(len(x))]
    for exposure in exposures:
        off = exposure - exposure.mean()
        rest = off - _fit_least_squares(off, design)
        if not is_flat(exposure) and (rest**2).sum() > MIN_OWN_VARIANCE * (off**2).sum():
            design.append(off / math.sqrt((off**2).sum()))
    if len(x) <= len(design):
        return np.full(len(x), math.nan)
    residual = x - _fit_least_squares(x, design)
    exact: bool = (residual**2).sum() <= (x**2).sum() * FLOAT32_EPSILON**2
    return np.zeros(len(x)) if exact else residual


def _fit_least_squares(x: Values, design: list[Values]) -> Values:
    columns = np.array(design).T
    fitted: Values = columns @ np.linalg.lstsq(columns, x, rcond=None)[0]
    return fitted


REGRESS_OUT = across(
    "regress_out", "x z", "same",
    Prose("Residual of the day's least-squares regression of x on a constant and some exposures z. An exposure that is "
          "constant, or of which those before it explain all but 1e-10 of the variance, is left out. Within groups: "
          "demean x and the exposures by group_demean first.",
          "{x} less its regression on {z}", "regress_out(returns, log(cap), ts_std(returns, 60))"),
    regress_out, cost=15.0, stacked=True, many=MAX_TERMS, scaling=("linear", *["even"] * MAX_TERMS),
    nan="A name that lacks an exposure is NaN, and so is a day with no more names than parameters. What the exposures "
        "fit exactly, as far as float32 can tell, is 0.",
    reference=_residual_reference,
)  # fmt: skip  # a table
