"""What a full sheet says beside its figures, as lines that a person reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .figures import DASH, basis_points, number, percent

__all__ = ["profile_rows", "spark"]

BLOCKS = "▁▂▃▄▅▆▇█"
SHOWN_HORIZONS = ("1", "2", "3", "5", "10", "20")
REGIME_ORDER = ("rising", "falling", "calm", "usual", "stormy")
EXPOSURE_WORDS = {
    "size": "size",
    "beta": "beta",
    "momentum": "momentum",
    "volatility": "volatility",
    "price": "price level",
}
MAX_SHARE_TOLD = 2.0
"""Share of a RankIC beyond which it is not told."""


def profile_rows(sheet: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return label and text of what is known of years, fifths, regimes, exposures and capacity; nothing for the rest."""
    rows = [
        ("RankIC by horizon, every fifth day", _decay(sheet.get("decay") or {})),
        ("RankIC by year", _years(sheet.get("by_year") or {})),
        ("fifths, low to high", _format_quintiles(sheet)),
        ("RankIC by the market's regime", _regimes(sheet.get("by_regime") or {})),
        ("rank correlation with", _exposures(sheet.get("exposures") or {})),
        ("with all of these taken out", _format_neutralised(sheet.get("neutralised") or {})),
        ("capacity of each side", _capacity(sheet.get("capacity") or {})),
    ]
    return [(label, text) for label, text in rows if text]


def spark(values: Sequence[float | None]) -> str:
    """Return one block a value, its height from the lowest (or zero) to the highest (or zero); a dot where unknown."""
    known = [0.0, *(value for value in values if value is not None)]
    low, span = min(known), (max(known) - min(known)) or 1.0
    top = len(BLOCKS) - 1
    return "".join("·" if value is None else BLOCKS[round((value - low) / span * top)] for value in values)


def _signed_ic(value: object) -> str:
    return number(value, 4, sign=True)


def _decay(decay: Mapping[str, Any]) -> str:
    days = sorted(decay, key=int)
    told = ", ".join(f"{day} d {_signed_ic(decay[day])}" for day in days if day in SHOWN_HORIZONS)
    return f"{told}  {spark([decay[day] for day in days])}" if len(days) > len(SHOWN_HORIZONS) else told


def _years(years: Mapping[str, Any]) -> str:
    return ", ".join(f"{year} {_signed_ic(value)}" for year, value in sorted(years.items()))


def _format_quintiles(sheet: Mapping[str, Any]) -> str:
    fifths = sheet.get("quantile_returns") or ()
    return (
        f"{', '.join(basis_points(value) for value in fifths)} over {sheet.get('horizon_days')} days" if fifths else ""
    )


def _regimes(regimes: Mapping[str, Any]) -> str:
    known = [(name, regimes[name]) for name in REGIME_ORDER if name in regimes]
    return ", ".join(f"{name} {_signed_ic(row.get('rank_ic'))} (t {number(row.get('t'), 1)})" for name, row in known)


def _exposures(exposures: Mapping[str, Any]) -> str:
    told = [
        f"{word} {number(exposures[name], 2, sign=True)}" for name, word in EXPOSURE_WORDS.items() if name in exposures
    ]
    if exposures.get("sector") is not None:
        told.append(f"sectors explain {percent(exposures['sector'], 0)} of its ranks' variance")
    return ", ".join(told)


def _format_neutralised(pure: Mapping[str, Any]) -> str:
    if pure.get("t") is None:
        return "nothing is left" if pure else ""
    share = pure.get("kept")
    told = share is not None and abs(share) <= MAX_SHARE_TOLD  # of a RankIC near zero no share says anything
    kept = f", {percent(share, 0)} of it kept" if told else ""
    return f"RankIC {_signed_ic(pure.get('rank_ic'))}, t {number(pure['t'], 2, sign=True)}{kept}"


def _capacity(capacity: Mapping[str, Any]) -> str:
    if not capacity:
        return ""
    held, even = capacity.get("at_10_percent_of_volume"), capacity.get("break_even")
    first = f"{_amount(held)} at a tenth of the volume"
    return (
        f"{first}; impact eats all at {_amount(even)}"
        if even
        else f"{first}; it earns nothing after costs to start with"
    )


def _amount(value: object) -> str:
    """Return an amount of the panel's currency in millions, or billions."""
    if not isinstance(value, int | float):
        return DASH
    return f"{value / 1e9:,.1f} billion" if value >= 1e9 else f"{value / 1e6:,.3g} million"
