"""What is true of accepted factors on a synthetic market, whose planted alphas are known.

Only a page and `results.json` hold it. It is computed after the last test, and no agent sees it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...evidence import Window
from ...evidence.scoring import round_significant
from ...factors import order_rows, parse, row_rank_correlation
from ...market import SyntheticMarket
from ..service import Evaluator
from .factor_records import PlantedTruth

Values = NDArray[np.float32]


def find_planted_truth(
    evaluator: Evaluator, market: SyntheticMarket, names: Sequence[str], *, open_sealed: bool
) -> list[PlantedTruth]:
    """Return for each factor how it ranks the symbols beside the true expected return, and the plant nearest to it.

    Parameters
    ----------
    market
        The simulated market of the run's panel.
    names
        Ids of scored factors.
    open_sealed
        Whether the run opened its sealed days; without that nothing is told of them.
    """
    last = evaluator.windows.sealed
    lasting = [plant for plant in market.plants if plant.end_day > evaluator.windows.selection.start]
    signals = {plant.text: evaluator.values(parse(plant.text), last) for plant in lasting}
    truths = [_find_truth(evaluator, market, name, signals) for name in names]
    return truths if open_sealed else [truth.model_copy(update={"true_on_sealed": None}) for truth in truths]


def _find_truth(evaluator: Evaluator, market: SyntheticMarket, name: str, signals: dict[str, Values]) -> PlantedTruth:
    row, windows = evaluator.scores[name], evaluator.windows
    sign = -1 if (row.sheet["rank_ic"] or 0.0) < 0 else 1
    held = sign * evaluator.values(evaluator.read(row.text), windows.sealed)
    near = {text: _correlate(held, signal, windows.selection) for text, signal in signals.items()}
    nearest = max(near, key=lambda text: (abs(near[text]), text), default="")
    return PlantedTruth(
        id=name,
        true_on_selection=round_significant(_correlate(held, market.expected_return, windows.selection)),
        true_on_sealed=round_significant(_correlate(held, market.expected_return, windows.sealed)),
        nearest=nearest,
        nearest_correlation=round_significant(near[nearest]) if nearest else None,
    )


def _correlate(values: NDArray[np.floating], other: NDArray[np.floating], window: Window) -> float:
    """Return the mean daily rank correlation of two arrays `[T, N]` on a window; NaN without a day that has both."""
    order = order_rows(np.ascontiguousarray(window.cut(other), dtype=np.float64))
    daily = row_rank_correlation(np.ascontiguousarray(window.cut(values), dtype=np.float32), order)
    known = daily[~np.isnan(daily)]
    return float(known.mean()) if known.size else math.nan
