"""Numbers as text for people; an unknown number is a dash."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..evaluation.closing import CostRates, Figure, IncrementalIC


DASH = "—"
MINUS = "\N{MINUS SIGN}"
UNRECORDED_COSTS = "costs that are not recorded"
NORMAL_QUANTILE_95 = 1.96
"""Standard errors on each side of a mean that hold 95 % of a normal law."""
MAX_SHARE_SHOWN = 2.0
"""Share of a clean figure beyond which the exact value is not shown."""


def _parse_finite(value: object) -> float | None:
    """Return a finite number as a float, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def number(value: object, digits: int = 3, *, sign: bool = False) -> str:
    """Return a decimal with a true minus sign, and with a plus sign if `sign`."""
    real = _parse_finite(value)
    if real is None:
        return DASH
    text = f"{real:+.{digits}f}" if sign else f"{real:.{digits}f}"
    return text.replace("-", MINUS)


def currency(value: object, *, sign: bool = False) -> str:
    """Return money in the prices' currency: two decimals and thousands separators."""
    real = _parse_finite(value)
    if real is None:
        return DASH
    text = f"{real:+,.2f}" if sign else f"{real:,.2f}"
    return text.replace("-", MINUS)


def p_value_text(value: object) -> str:
    """Return a p-value with two significant digits."""
    real = _parse_finite(value)
    return DASH if real is None else f"{real:.2g}".replace("-", MINUS)


def percent(value: object, digits: int = 1) -> str:
    """Return a share as a percentage."""
    real = _parse_finite(value)
    if real is None:
        return DASH
    return f"{100 * real:.{digits}f}".replace("-", MINUS) + " %"


def basis_points(value: object) -> str:
    """Return a fraction in basis points."""
    real = _parse_finite(value)
    return DASH if real is None else (f"{1e4 * real:+.0f} bp" if real else "0 bp").replace("-", MINUS)


def count(value: object) -> str:
    """Return a whole number with thousands separators."""
    real = _parse_finite(value)
    return DASH if real is None else f"{round(real):,}".replace("-", MINUS)


def money(value: object) -> str:
    """Return dollars: cents from a dollar up, four decimals below."""
    real = _parse_finite(value)
    if real is None:
        return DASH
    return f"${real:,.2f}" if real >= 1 or real == 0 else f"${real:.4f}"


def duration(seconds: object) -> str:
    """Return a time span in its two largest units."""
    real = _parse_finite(seconds)
    if real is None:
        return DASH
    minutes, remainder = divmod(round(real), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {remainder:02d} s" if minutes else f"{remainder} s"


def plural(amount: int, one: str, many: str = "") -> str:
    """Return `1 factor`, `2 factors`, `no factors`."""
    word = one if amount == 1 else many or f"{one}s"
    return f"{amount:,} {word}" if amount else f"no {word}"


def any_value(value: object) -> str:
    """Return any JSON value as short text, for keys whose meaning is unknown here."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return f"{value:,.3g}".replace("-", MINUS) if abs(value) < 100 else number(value, 1)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {any_value(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(any_value(item) for item in value)
    return DASH if value is None or value == "" else str(value)


def short_id(factor: object) -> str:
    """Return a factor's id short enough for a table."""
    text = str(factor or DASH)
    return text if len(text) <= 10 else text[:9]


def describe_added_value(added: IncrementalIC | None, whose: str = "the library") -> str:
    """Describe a factor's incremental RankIC beside the library, or part of it; a dash if there is none."""
    if not added:
        return DASH
    others = f"the library's {plural(added.library, 'factor')}" if whose == "the library" else whose
    if added.t is None:
        return f"nothing: {others} say all of it"
    increment = f"RankIC {number(added.rank_ic, 4, sign=True)}, t {number(added.t, 2, sign=True)}"
    return f"{increment}; {percent(added.kept, 0)} of its rank variance is unexplained by {others}"


def describe_costs(costs: CostRates | None) -> str:
    """Describe the costs that a figure after costs includes."""
    if costs is None or costs.bps_per_side is None:
        return UNRECORDED_COSTS
    side, borrow = any_value(costs.bps_per_side), any_value(costs.borrow_bps_per_year)
    return f"{side} bp for each side of a trade and {borrow} bp a year for borrowing"


def format_share_kept(value: Figure) -> str:
    """Return a share in whole per cent without the sign; a dot for None.

    Beyond twice the clean figure only "> 200" or "< -200" is shown.
    """
    if value is None:
        return "\N{MIDDLE DOT}"
    if abs(value) > MAX_SHARE_SHOWN:
        return f"> {100 * MAX_SHARE_SHOWN:.0f}" if value > 0 else f"< {number(-100 * MAX_SHARE_SHOWN, 0)}"
    return number(100 * value, 0)
