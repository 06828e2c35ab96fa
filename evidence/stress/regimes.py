"""Synthetic regimes: the panel's own days and names with a crash, a grind, a calm, a rotation or a drought laid over.

Each day's log move of a name is split, r = beta m + s + e: the market's part (trailing betas), the sector's, and the
idiosyncratic part. A regime changes the parts as its docstring says and keeps the order of the idiosyncratic parts, so
they stay as predictable as they were. A factor that predicts them steadily survives; a factor whose signal drowns in
common moves, or whose profit does not cover the wider spread, breaks. A regime cannot show how people would behave in
it; the historical stretches do. A quarter of an added move falls in the night, the rest in the day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...market import Panel
from .moves import Overlay, PanelMoves, apply_overlay

Frame = NDArray[np.float64]
Rows = NDArray[np.bool_]

NIGHT_SHARE: Final = 0.25
CRASH_DAYS, CRASH_CYCLE_DAYS, CRASH_AFTERMATH_DAYS = 10, 42, 5
CRASH_FALL: Final = float(np.log(0.8))
CRASH_DEVIATION: Final = 0.03
CRASH_OWN_SHARE: Final = 0.5
GRIND_FALL: Final = float(np.log(0.8)) / 252
GRIND_MARKET_SHARE: Final = 0.5
CALM_SCALE: Final = 0.6
ROTATION_DAYS, ROTATION_DRIFT = 21, 0.004
DROUGHT_DAYS, DROUGHT_VOLUME, DROUGHT_SPREAD = 42, 0.1, 0.0025
CRASH_COSTS, DROUGHT_COSTS = 2.0, 3.0


@dataclass(frozen=True, eq=False)
class Regime:
    """A market under one regime.

    Attributes
    ----------
    panel
        Prices and volumes under the regime; factors and labels are computed on it.
    rows
        Days on which the regime is measured, ``[T]``.
    costs
        Factor on trading costs on those days.
    """

    code: str
    panel: Panel
    rows: Rows
    costs: float = 1.0


@dataclass(frozen=True, eq=False)
class RegimeOverlay:
    """The overlay of a regime, and the days on which it is measured."""

    overlay: Overlay
    rows: Rows
    costs: float = 1.0


Maker = Callable[[PanelMoves, np.random.Generator], RegimeOverlay]


def build_regimes(moves: PanelMoves, seed: int) -> Iterator[Regime]:
    """Yield every regime that this panel allows; rotation needs three sectors, a crash one cycle of 42 days.

    Parameters
    ----------
    moves
        Moves of the days that may be read; T days, N names.
    seed
        Each regime has its own random stream, so the draws of one do not shift another's.
    """
    for place, (code, make) in enumerate(REGIME_MAKERS.items()):
        if (code == "sector_rotation" and moves.by_sector.shape[1] < 3) or (
            code == "crash" and moves.panel.days < CRASH_CYCLE_DAYS
        ):
            continue
        overlay = make(moves, np.random.default_rng([seed, place]))
        yield Regime(code, apply_overlay(moves.panel, overlay.overlay), overlay.rows, overlay.costs)


def crash(moves: PanelMoves, rng: np.random.Generator) -> RegimeOverlay:
    """Let the market fall 20 % in 10 days of every 42, with correlation near one, and recover until the next crash.

    In the crash a name's move is beta times a common shock (deviation 3 % a day, total log 0.8) plus half of its
    idiosyncratic and its sector's move. Volume is 2.5 times the usual, ranges are twice as wide, and costs double.
    Measured on the ten days and the five after them.
    """
    days = len(moves.total)
    at = np.arange(days) % CRASH_CYCLE_DAYS - (CRASH_CYCLE_DAYS - CRASH_DAYS - CRASH_AFTERMATH_DAYS)
    inside = (at >= 0) & (at < CRASH_DAYS)
    shocks = rng.normal(0.0, CRASH_DEVIATION, (-(-days // CRASH_CYCLE_DAYS), CRASH_DAYS))
    shocks += CRASH_FALL / CRASH_DAYS - shocks.mean(axis=1, keepdims=True)
    shock = np.where(inside, shocks[np.arange(days) // CRASH_CYCLE_DAYS, np.clip(at, 0, CRASH_DAYS - 1)], 0.0)[:, None]
    crash_moves = moves.beta * (shock - moves.market) - (1.0 - CRASH_OWN_SHARE) * (moves.own + moves.sector)
    recovery = moves.beta * (-CRASH_FALL / (CRASH_CYCLE_DAYS - CRASH_DAYS))
    volume, reach = np.where(inside, 2.5, 1.0)[:, None], np.where(inside, 2.0, 1.0)[:, None]
    rows = (at >= 0) & (at < CRASH_DAYS + CRASH_AFTERMATH_DAYS)
    return RegimeOverlay(
        _overlay_moves(np.where(inside[:, None], crash_moves, recovery), reach, volume), rows, CRASH_COSTS
    )


def grind(moves: PanelMoves, rng: np.random.Generator) -> RegimeOverlay:
    """Let the market lose 20 % a year, evenly, at half its volatility, with 0.8 of the volume; other moves stay."""
    extra = moves.beta * (GRIND_FALL - (1.0 - GRIND_MARKET_SHARE) * moves.market)
    return RegimeOverlay(_overlay_moves(extra, 1.0, 0.8), _all_rows(moves))


def calm(moves: PanelMoves, rng: np.random.Generator) -> RegimeOverlay:
    """Scale every move and range by 0.6 and volume by 0.8; costs stay, so they take a larger share of returns."""
    night, day = (CALM_SCALE - 1.0) * moves.night, (CALM_SCALE - 1.0) * moves.day
    closing = np.cumsum(night + day, axis=0)
    return RegimeOverlay(Overlay(closing - day, closing, CALM_SCALE, 0.8), _all_rows(moves))


def rotation(moves: PanelMoves, rng: np.random.Generator) -> RegimeOverlay:
    """Add 0.4 % a day to half of the sectors for 21 days and subtract it from the others; then exchange their sides.

    The leading half is drawn again after every two such months. Names without a sector keep their moves.
    """
    codes = moves.exposures.sector
    days, sectors = len(moves.total), moves.by_sector.shape[1]
    block = np.arange(days) // ROTATION_DAYS
    sides = np.array([rng.permutation(np.arange(sectors) % 2) for _ in range(int(block[-1]) // 2 + 1)]) * 2.0 - 1.0
    lead = sides[block // 2] * np.where(block % 2 == 0, 1.0, -1.0)[:, None] * ROTATION_DRIFT
    return RegimeOverlay(_overlay_moves(np.where(codes >= 0, lead[:, codes], 0.0), 1.0, 1.0), _all_rows(moves))


def drought(moves: PanelMoves, rng: np.random.Generator) -> RegimeOverlay:
    """Cut volume to about a tenth on 42 days of every 84; quotes bounce by 0.25 % and costs are threefold.

    The tenth is multiplied by a lognormal of deviation 0.5 per day and name. Each open and close is at the bid or at
    the ask, 0.25 % off either way. Ranges are 1.5 times as wide. Measured on those days.
    """
    shape = moves.total.shape
    is_dry = (np.arange(shape[0]) // DROUGHT_DAYS % 2 == 1)[:, None]
    share = np.where(is_dry, DROUGHT_VOLUME * np.exp(rng.normal(0.0, 0.5, shape)), 1.0)
    opening, closing = (np.where(is_dry, DROUGHT_SPREAD * rng.choice([-1.0, 1.0], shape), 0.0) for _ in range(2))
    return RegimeOverlay(Overlay(opening, closing, np.where(is_dry, 1.5, 1.0), share), is_dry[:, 0], DROUGHT_COSTS)


REGIME_MAKERS: Mapping[str, Maker] = {
    "crash": crash,
    "grind": grind,
    "low_volatility": calm,
    "sector_rotation": rotation,
    "liquidity_drought": drought,
}


def _overlay_moves(extra: Frame, reach: Frame | float, volume: Frame | float) -> Overlay:
    """Return the overlay that adds a log move to each day."""
    closing = np.cumsum(extra, axis=0)
    return Overlay(closing - (1.0 - NIGHT_SHARE) * extra, closing, reach, volume)


def _all_rows(moves: PanelMoves) -> Rows:
    return np.ones(len(moves.total), np.bool_)
