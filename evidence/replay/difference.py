"""Two records compared: where they differ, by path."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLOSE = 1e-9
"""Relative; the last digits of a sum of float64 depend on the machine's instruction set."""
ROUNDED = {"p_value": 2e-6, "p_labels": 2e-6, "level": 2e-6}
"""Recorded to six digits."""


@dataclass(frozen=True)
class Difference:
    """One place where what is recorded and what comes out again are not the same."""

    field: str
    recorded: Any
    recomputed: Any

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"field": self.field, "recorded": self.recorded, "recomputed": self.recomputed}


def differences(recorded: Any, recomputed: Any, field: str = "") -> Iterator[Difference]:
    """Yield where two JSON values differ: numbers beyond rounding, all else exactly."""
    if isinstance(recorded, Mapping) and isinstance(recomputed, Mapping):
        for key in sorted({*recorded, *recomputed}):
            yield from differences(recorded.get(key), recomputed.get(key), f"{field}.{key}" if field else str(key))
    elif _listed(recorded) and _listed(recomputed) and len(recorded) == len(recomputed):
        for place, (one, other) in enumerate(zip(recorded, recomputed, strict=True)):
            yield from differences(one, other, f"{field}[{place}]")
    elif not _same(recorded, recomputed, ROUNDED.get(field.rpartition(".")[2], CLOSE)):
        yield Difference(field, recorded, recomputed)


def series_difference(field: str, recorded: NDArray[Any], recomputed: NDArray[Any]) -> Iterator[Difference]:
    """Yield the first day on which two daily series `[D]` differ, or nothing; NaN equals NaN."""
    if recorded.shape != recomputed.shape:
        yield Difference(f"{field} (days)", len(recorded), len(recomputed))
        return
    unlike = np.flatnonzero(~np.isclose(recorded, recomputed, rtol=CLOSE, atol=1e-12, equal_nan=True))
    if unlike.size:
        day = int(unlike[0])
        yield Difference(f"{field}[{day}]", _plain(recorded[day]), _plain(recomputed[day]))


def _listed(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _same(one: Any, other: Any, close: float) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return math.isclose(one, other, rel_tol=close, abs_tol=1e-15) if numbers else bool(one == other)


def _plain(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)
