"""The panels of the attacked sandbox: one's own, whose last days are marked, and another tenant's."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from alphaloom.sandbox import Frames

__all__ = ["DAYS", "NAMES", "SHOWN", "foreign", "own", "small", "tenant"]

DAYS, NAMES, SHOWN, PROVING_DAYS = 120, 40, 60, 40
"""Of the own panel's days, snippets with `rows` see the first sixty."""
FIELDS = ("close", "open", "volume")


def own(seed: int = 0) -> Frames:
    """Return the panel that snippets get; values of the days after SHOWN are between 1e-88 and 2e-88."""
    rng = np.random.default_rng(seed)
    fields = {name: np.exp(0.01 * rng.standard_normal((DAYS, NAMES)).cumsum(axis=0)) for name in FIELDS}
    for values in fields.values():
        values[SHOWN:] = 1e-88 * rng.uniform(1, 2, (DAYS - SHOWN, NAMES))
    return Frames(fields, _days(DAYS), tuple(f"S{place:03}" for place in range(NAMES)))


def small(seed: int = 2) -> Frames:
    """Return a panel on which causality is proven: few days and names, all of them plain."""
    rng = np.random.default_rng(seed)
    close = np.exp(0.02 * rng.standard_normal((PROVING_DAYS, 8)).cumsum(axis=0))
    return Frames({name: close for name in FIELDS}, _days(PROVING_DAYS), tuple("ABCDEFGH"))


def tenant(seed: int = 1) -> Frames:
    """Return a panel of somebody else; all its values are between 1e-77 and 2e-77."""
    rng = np.random.default_rng(seed)
    fields = {name: 1e-77 * rng.uniform(1, 2, (DAYS, NAMES)) for name in FIELDS}
    return Frames(fields, _days(DAYS), tuple(f"TENANT{place:03}" for place in range(NAMES)))


@functools.cache
def _hidden(cut_off: bool) -> NDArray[np.uint64]:
    others = [*tenant().fields.values(), *(values[SHOWN:] for values in own().fields.values() if cut_off)]
    return np.concatenate([other.ravel() for other in others]).view(np.uint64)


def foreign(text: bytes, *, cut_off: bool) -> bool:
    """Tell whether bytes hold a value or a name of the other tenant, or a value of a day that was cut off."""
    if b"TENANT0" in text:
        return True
    shifted = (np.frombuffer(text[start : start + (len(text) - start) // 8 * 8], "<u8") for start in range(8))
    return any(np.isin(words, _hidden(cut_off)).any() for words in shifted)


def _days(count: int) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    return np.datetime64("2020-01-01") + np.arange(count)
