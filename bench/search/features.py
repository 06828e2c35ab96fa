"""Qlib's Alpha158 as ranks of each day: what rivals that learn from features are given."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from alphaloom.evidence.originality.published import formulas
from alphaloom.factors import Engine, Expression, parse

from .choice import centred_ranks
from .world import Ground

__all__ = ["NAMED", "alpha158", "formula", "hand_over"]

NAMED = "Alpha158 "


@cache
def alpha158() -> Mapping[str, Expression]:
    """Return the 158 formulas by name, read from Qlib's language into ours."""
    return {name: parse(text, dialect="qlib") for name, text in formulas("alpha158").items()}


def formula(text: str) -> Expression:
    """Read a formula, or a feature by its name: ``Alpha158 VSTD60``; Qlib's units are laxer than ours."""
    return alpha158()[text.removeprefix(NAMED)] if text.startswith(NAMED) else parse(text)


def hand_over(ground: Ground, folder: Path) -> None:
    """Write what a rival in another process reads.

    ``features.npy`` ``[158, T, N]``: centred ranks of each day, 0 where missing, of all days; ``label.npy``
    ``[days, N]``: centred ranks of the labels of search days, NaN where there is none. No label of a later day is
    written.
    """
    days, names = ground.whole.universe.shape
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float16, (len(alpha158()), days, names))
    computed = Engine(ground.whole, threads=1).stream(list(alpha158().values()))
    for place, values in enumerate(computed):
        features[place] = centred_ranks(values)
    features.flush()
    label = centred_ranks(ground.label.astype(np.float32))
    label[np.isnan(ground.label)] = np.nan
    np.save(folder / "label.npy", label)
