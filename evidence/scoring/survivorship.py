"""Warn of a factor that leans on size where the panel is a list of survivors.

On such a panel small names look better than they were, because the small ones that did not grow are missing: minus size
earns a return that no investor could have earned. A factor leans on size if its mean daily rank correlation with size
is beyond 0.2 and beyond 4.5 / sqrt(names). An unrelated factor that ranks names the same way every day does so with a
probability of 7e-6. The warning also has the size effect on the search window. A label that is residual to size does
not contain that effect; the long-short and raw returns do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...factors import RowOrder, order_rows, row_rank_correlation
from ...market import Panel
from ...market.quality import LogMoves, find_survivorship
from ..newey_west import LAG_PER_HORIZON, NeweyWest, newey_west_t
from ..windows import Window
from .labels import cut_label, forward_returns

Frame = NDArray[np.float64]
SIZE_TEST_DAYS = 50
"""Evenly spaced days on which a factor is compared with size; both change slowly."""
MIN_SIZE_CORRELATION = 0.2
SIZE_CORRELATION_ERRORS = 4.5
SIZE_LEAN_MESSAGE = (
    "leans on size (mean rank correlation {lean:+.2f}) on a panel that looks like a list of survivors, where small "
    "names seem to beat large ones by themselves: on this window minus size has a RankIC of {effect:+.3f} (t {t:.1f}) "
    "on raw returns; believe only what is neutral to size, or repeat it on a panel that holds the names that vanished"
)


@dataclass(frozen=True)
class Survivorship:
    """Finds factors that lean on size on a list of survivors; reads prices of one window only.

    `size` `[T, N]` is the log of capitalisation or of dollar volume, known at each close.
    """

    panel: Panel
    window: Window
    size: Frame
    horizon: int

    @cached_property
    def suspected(self) -> bool:
        """Tell whether the panel looks like a list of survivors, from its days up to the end of the window.

        Later delistings must not be used: agents read this warning in the metrics of search.
        """
        return find_survivorship(LogMoves(self.panel.rows(0, self.window.stop))) is not None

    @cached_property
    def size_effect(self) -> NeweyWest:
        """Return the mean daily RankIC of minus size against raw returns on the window, with its Newey-West t."""
        label = cut_label(forward_returns(self.panel, self.horizon), self.window, self.horizon)
        small = np.where(self.panel.universe, -self.size, np.nan)
        daily = row_rank_correlation(self.window.cut(small).astype(np.float32), label.astype(np.float32))
        return newey_west_t(daily, LAG_PER_HORIZON * self.horizon)

    def objection(self, values: NDArray[np.float32]) -> str:
        """Return the warning if a factor `[T, N]` leans on size on a list of survivors, else an empty text."""
        if not self.suspected:
            return ""
        daily = row_rank_correlation(self.window.cut(values)[:: self._step], self._sizes)
        present = daily[~np.isnan(daily)]
        lean = float(present.mean()) if present.size else 0.0
        if abs(lean) < max(MIN_SIZE_CORRELATION, SIZE_CORRELATION_ERRORS / np.sqrt(max(self._names, 1.0))):
            return ""
        return SIZE_LEAN_MESSAGE.format(lean=lean, effect=self.size_effect.mean, t=self.size_effect.t)

    @property
    def _step(self) -> int:
        return max(1, self.window.days // SIZE_TEST_DAYS)

    @cached_property
    def _sizes(self) -> RowOrder:
        return order_rows(self.window.cut(self.size)[:: self._step].astype(np.float32))

    @cached_property
    def _names(self) -> float:
        return float(np.median(self.window.cut(self.panel.universe).sum(axis=1)))
