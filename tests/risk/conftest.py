"""A calm book: every limit is far away, so that a test can bring one near."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from alphaloom.risk import BookState
from alphaloom.risk.signal import Signal

NOW = date(2020, 3, 2)


def signal(asset: str = "AAA", target: int = 100, **changed: Any) -> Signal:
    """Return a signal whose bounds are its target."""
    fields = {"lo_bp": target, "hi_bp": target, "horizon_days": 5, "reason": "test", "evidence": "f0"}
    return Signal(**{"asset": asset, "target_bp": target, **fields, **changed})


def state(**changed: Any) -> BookState:
    """Return the state of an empty book with fresh prices."""
    prices = {asset: NOW for asset in ("AAA", "BBB", "CCC", "DDD", "EEE", "FFF")}
    return BookState(**{"positions": {}, "last_price": prices, "equity": 10_000, "high_water": 10_000, **changed})


@pytest.fixture(name="signal")
def _signal() -> Callable[..., Signal]:
    return signal


@pytest.fixture(name="state")
def _state() -> Callable[..., BookState]:
    return state
