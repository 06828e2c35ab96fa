"""Two records compared: where they differ, by path."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RELATIVE_TOLERANCE = 1e-9
"""Relative; the last digits of a sum of float64 depend on the machine's instruction set."""
FIELD_TOLERANCES = {"p_value": 2e-6, "p_labels": 2e-6, "level": 2e-6}
"""Recorded to six digits."""


@dataclass(frozen=True)
class RecordDifference:
    """One place where what is recorded and what comes out again are not the same."""

    field: str
    recorded: Any
    recomputed: Any

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"field": self.field, "recorded": self.recorded, "recomputed": self.recomputed}


def differences(recorded: Any, recomputed: Any, field: str = "") -> Iterator[RecordDifference]:
    """Yield where two JSON values differ: numbers beyond rounding, all else exactly."""
    if isinstance(recorded, Mapping) and isinstance(recomputed, Mapping):
        for key in sorted({*recorded, *recomputed}):
            yield from differences(recorded.get(key), recomputed.get(key), f"{field}.{key}" if field else str(key))
    elif _is_list(recorded) and _is_list(recomputed) and len(recorded) == len(recomputed):
        for place, (one, other) in enumerate(zip(recorded, recomputed, strict=True)):
            yield from differences(one, other, f"{field}[{place}]")
    elif not _is_same(recorded, recomputed, FIELD_TOLERANCES.get(field.rpartition(".")[2], RELATIVE_TOLERANCE)):
        yield RecordDifference(field, recorded, recomputed)


def series_difference(field: str, recorded: NDArray[Any], recomputed: NDArray[Any]) -> Iterator[RecordDifference]:
    """Yield the first day on which two daily series `[D]` differ, or nothing; NaN equals NaN."""
    if recorded.shape != recomputed.shape:
        yield RecordDifference(f"{field} (days)", len(recorded), len(recomputed))
        return
    unlike = np.flatnonzero(~np.isclose(recorded, recomputed, rtol=RELATIVE_TOLERANCE, atol=1e-12, equal_nan=True))
    if unlike.size:
        day = int(unlike[0])
        yield RecordDifference(f"{field}[{day}]", _to_json_number(recorded[day]), _to_json_number(recomputed[day]))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_same(one: Any, other: Any, close: float) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return math.isclose(one, other, rel_tol=close, abs_tol=1e-15) if numbers else bool(one == other)


def _to_json_number(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)
