"""A calm book: every limit is far away, so that a test can bring one near."""

import math
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from alphaloom.risk import UNITS_PER_BP, UNITS_PER_EQUITY, AssetFacts, BookState, Standing
from alphaloom.risk.signal import Signal

NOW = date(2020, 3, 2)
KNOWN = {"f0": Standing("f0", "accepted", "d" * 64, 1, 2_000, "shares rank", status="live")}
"""A factor that passes every rule of evidence."""
HAIR = 1 / UNITS_PER_BP
"""The smallest step of an exposure, in basis points."""


def to_e8(bp: Any) -> Any:
    """Return basis points in the gate's units; what is no number stays as it is."""
    return round(bp * UNITS_PER_BP) if type(bp) in (int, float) and math.isfinite(bp) else bp


def signal(asset: str = "AAA", target: float = 100, **changed: Any) -> Signal:
    """Return a signal whose bounds are its target, in basis points; fields of `changed` as the gate has them."""
    bounds = {name: changed.pop(name, target) for name in ("lo", "hi")}
    fields = {f"{name}_e8": to_e8(value) for name, value in {"target": target, **bounds}.items()}
    texts = {"horizon_days": 5, "reason": "test", "evidence": "f0", "until": NOW}
    return Signal(**{"asset": asset, **fields, **texts, **changed})


def facts(**changed: Any) -> AssetFacts:
    """Return the facts of a large name in industry with a calm price of today."""
    return AssetFacts(
        **{"last_price": NOW, "sector": "industry", "jump_bp": 0, "volume_e8": UNITS_PER_EQUITY, **changed}
    )


def state(**changed: Any) -> BookState:
    """Return the state of an empty book with fresh prices; positions and what was traded in basis points."""
    known = {asset: facts() for asset in ("AAA", "BBB", "CCC", "DDD", "EEE", "FFF")}
    changed["assets"] = {**known, **changed.get("assets", {})}
    changed["positions"] = {asset: to_e8(bp) for asset, bp in changed.get("positions", {}).items()}
    if "traded" in changed:
        changed["traded_e8"] = to_e8(changed.pop("traded"))
    return BookState(**{"equity": 10_000, "high_water": 10_000, **changed})


@pytest.fixture(name="signal")
def _signal() -> Callable[..., Signal]:
    return signal


@pytest.fixture(name="state")
def _state() -> Callable[..., BookState]:
    return state
