# Written as people write it: a dataclass, typed functions, a comprehension over windows.
# mypy: ignore-errors
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True)
class Window:
    days: int
    weight: float


def trend(close: pd.DataFrame, window: Window) -> pd.DataFrame:
    return window.weight * np.log(close / close.shift(window.days)) / math.sqrt(window.days)


def factor(panel):
    """Blend three trends."""
    windows = [Window(5, -1.0), Window(20, 0.5), Window(60, 1.0)]
    return reduce(lambda a, b: a + b, (trend(panel["close"], window) for window in windows))
