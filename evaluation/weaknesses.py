"""Name the weaknesses of a factor from its metrics on search, so that the next change can address them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evidence import Window
from ..evidence.scoring import Exposures, round_significant
from ..factors import row_rank_correlation

MIN_SCREEN_T = 3.0
HIGH_TURNOVER = 2 / 3
"""Share of a sleeve that is replaced at its end; for white noise it is four fifths."""
MAX_EXPOSURE_CORRELATION = 0.5
MIN_RANK_IC_LEFT = 0.5
"""Share of RankIC that should remain: of the one-day figure at ten days, and of the mean without the best year."""
EXPOSURE_STEP_DAYS = 5
EXPOSURES = {"beta": "beta", "size": "size", "volatility": "volatility", "momentum": "momentum", "price": "price level"}


def _make_weakness(code: str, value: float, message: str) -> dict[str, Any]:
    return {"code": code, "value": round_significant(value), "message": message}


def name_weaknesses(
    sheet: Mapping[str, Any], values: NDArray[np.float32], exposures: Exposures, window: Window
) -> list[dict[str, Any]]:
    """Return the named weaknesses of a factor on the search window, each `{code, value, message}`.

    `values` are the factor's `[T, N]`, NaN missing. The codes:

    - `weak`: |t| below 3;
    - `turnover`: over two thirds of a sleeve are replaced at its end; the value is one-way turnover per day over gross;
    - `costs`: a positive return before costs is lost after them;
    - `decay`: less than half of the one-day RankIC remains at ten days;
    - `one_year`: less than half of the RankIC remains without the best year;
    - `exposure`: mean rank correlation with beta, size, volatility, momentum or price level beyond 0.5.
    """
    weaknesses = _name_from_figures(sheet)
    curve = sheet["decay"]
    first, tenth = curve.get("1"), curve.get("10")
    if first and tenth is not None and abs(first) > 0.01 and tenth / first < MIN_RANK_IC_LEFT:
        message = f"less than half of the one-day RankIC remains at ten days ({tenth / first:.0%})"
        weaknesses.append(_make_weakness("decay", tenth / first, message))
    weaknesses += _name_one_year(sheet)
    weaknesses += _name_exposures(values, exposures, window)
    return weaknesses


def _name_from_figures(sheet: Mapping[str, Any]) -> list[dict[str, Any]]:
    weaknesses = []
    t = sheet["t"] or 0.0
    if abs(t) < MIN_SCREEN_T:
        message = f"|t| = {abs(t):.1f} in sample, below the screening threshold of {MIN_SCREEN_T:g}"
        weaknesses.append(_make_weakness("weak", t, "t is undefined in sample" if sheet["t"] is None else message))
    turnover = sheet["turnover"] or 0.0
    if turnover * sheet["horizon_days"] > HIGH_TURNOVER:
        threshold = HIGH_TURNOVER / sheet["horizon_days"]
        message = f"{turnover:.0%} of the book is traded each day (threshold {threshold:.0%})"
        weaknesses.append(_make_weakness("turnover", turnover, message))
    gross, net = sheet["gross_sharpe"], sheet["net_sharpe"]
    if gross is not None and net is not None and gross > 0.3 and net <= 0:
        weaknesses.append(_make_weakness("costs", net, f"Sharpe {gross:+.2f} before costs, {net:+.2f} after costs"))
    return weaknesses


def _name_one_year(sheet: Mapping[str, Any]) -> list[dict[str, Any]]:
    years = [value for value in sheet["by_year"].values() if value is not None]
    mean = sheet["rank_ic"]
    if not mean or len(years) < 3:
        return []
    signed = sorted(value * (1 if mean > 0 else -1) for value in years)
    share = float(np.mean(signed[:-1])) / abs(mean)
    message = f"less than half of the RankIC remains without the best year ({share:.0%})"
    return [_make_weakness("one_year", share, message)] if share < MIN_RANK_IC_LEFT else []


def _name_exposures(values: NDArray[np.float32], exposures: Exposures, window: Window) -> list[dict[str, Any]]:
    weaknesses = []
    thin = np.ascontiguousarray(window.cut(values)[::EXPOSURE_STEP_DAYS])
    for name, word in EXPOSURES.items():
        exposure = np.ascontiguousarray(window.cut(getattr(exposures, name))[::EXPOSURE_STEP_DAYS])
        daily = row_rank_correlation(thin, exposure)
        mean = float(np.nanmean(daily)) if not np.isnan(daily).all() else 0.0
        if abs(mean) > MAX_EXPOSURE_CORRELATION:
            message = f"exposure to {word}: rank correlation {mean:.2f} (threshold {MAX_EXPOSURE_CORRELATION:g})"
            weaknesses.append(_make_weakness("exposure", mean, message))
    return weaknesses
