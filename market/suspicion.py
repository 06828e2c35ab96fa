"""What looks wrong in a panel and may be right: said in its notes, never changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .panel import Panel

WILD_MOVE = 0.4
"""A daily move beyond this that is gone the next day is probably a wrong price."""
BACK_WITHIN = 0.2
SHOWN = 5
LONG_ENOUGH = 250
"""Days without a single delisting that make one suspect a list of survivors."""
STILL_TRADES = 5


def suspicions(panel: Panel) -> tuple[str, ...]:
    """Return the warnings that a panel must carry."""
    found = (survivors(panel), levels(panel), bad_ticks(panel), odd_bars(panel))
    return tuple(note for note in found if note)


def survivors(panel: Panel) -> str:
    """Suspect survivorship if nobody ever left."""
    alive = int(panel.universe[-STILL_TRADES:].any(axis=0).sum())
    if panel.days < LONG_ENOUGH or alive < panel.names:
        return ""
    return (
        f"survivorship suspected: all {panel.names} names still trade on the last day, so names that vanished "
        "are missing; size and past returns look better than they were"
    )


def levels(panel: Panel) -> str:
    """Warn of price levels unless every close is the quoted one."""
    if not panel.back_adjusted:
        return ""
    if "close_raw" in panel.fields:
        return (
            "close differs from close_raw: a level of prices adjusted backwards (close, close*volume, close/close_raw) "
            "knows later splits and dividends; ratios of adjusted prices, returns and close_raw do not"
        )
    return (
        "no close_raw: if these prices are adjusted backwards, a price level (close, close*volume) knows later "
        "splits and dividends; ratios and returns do not"
    )


def maybe_adjusted(panel: Panel) -> bool:
    """Tell whether the prices may be adjusted backwards: unless the file shows that every close is the quoted one."""
    quoted = panel.fields.get("close_raw")
    return quoted is None or not np.allclose(panel.fields["close"], quoted, rtol=1e-9, atol=0.0, equal_nan=True)


def bad_ticks(panel: Panel) -> str:
    """Point at moves above 40 % that are gone the next day."""
    close = panel.fields["close"]
    if panel.days < 3:
        return ""
    with np.errstate(invalid="ignore"):
        wild = np.abs(panel.fields["returns"][1:-1]) > WILD_MOVE
        back = np.abs(close[2:] / close[:-2] - 1.0) < BACK_WITHIN
    return _listed("bad ticks suspected (a move above 40 % that is gone the next day)", panel, wild & back, 1)


def odd_bars(panel: Panel) -> str:
    """Point at days whose open or close lies outside low to high."""
    fields = panel.fields
    with np.errstate(invalid="ignore"):
        above = np.maximum(fields["open"], fields["close"]) > fields["high"] * (1 + 1e-9)
        below = np.minimum(fields["open"], fields["close"]) < fields["low"] * (1 - 1e-9)
    return _listed("open or close outside low to high", panel, above | below, 0)


def _listed(what: str, panel: Panel, where: NDArray[np.bool_], offset: int) -> str:
    """Return what was found, how often, and the first cases; nothing if it was not."""
    cases = np.argwhere(where)
    if not len(cases):
        return ""
    first = ", ".join(f"{panel.symbols[name]} {panel.dates[day + offset]}" for day, name in cases[:SHOWN].tolist())
    more = f" and {len(cases) - SHOWN:,} more" if len(cases) > SHOWN else ""
    return f"{what}: {first}{more}; nothing was changed"
