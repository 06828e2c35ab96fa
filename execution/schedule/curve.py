"""The volume that a session usually trades, interval by interval: what VWAP follows and a participation cap counts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..orders import refuse_unless

U_FLOOR = 0.7
"""Volume at noon, as a share of the session's mean; from it the curve of `make_u_curve` rises to both ends."""
U_RISE = 1.6
"""What open and close trade above `U_FLOOR`."""


@dataclass(frozen=True, slots=True)
class VolumeCurve:
    """Expected volume of the intervals of one session.

    Attributes
    ----------
    edges_us
        Where intervals begin, ascending, and where the last one ends: one more than there are intervals. Microseconds
        since 1970 in UTC.
    volume_shares
        Whole shares that the market is expected to trade in each interval, 0 or more.

    Raises
    ------
    ExecutionError
        There is no interval, edges do not ascend, or a volume is below 0.
    """

    edges_us: tuple[int, ...]
    volume_shares: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse a malformed curve."""
        edges, volumes = self.edges_us, self.volume_shares
        fine = len(edges) == len(volumes) + 1 >= 2 and all(a < b for a, b in pairwise(edges))
        refuse_unless(fine, "edges_us", edges, "ascending times, one more than there are volumes")
        refuse_unless(all(volume >= 0 for volume in volumes), "volume_shares", volumes, "0 or more each")

    @property
    def day_shares(self) -> int:
        """Return the expected volume of the session."""
        return sum(self.volume_shares)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Return the length of each interval as a share of the session `[N]`."""
        edges = np.array(self.edges_us, np.float64)
        return np.asarray(np.diff(edges) / (edges[-1] - edges[0]), np.float64)

    def merge(self) -> VolumeCurve:
        """Return the session as one interval."""
        return VolumeCurve((self.edges_us[0], self.edges_us[-1]), (self.day_shares,))


def spread_whole(weights: NDArray[np.float64], total: int) -> list[int]:
    """Return whole numbers in proportion to `weights [N]` that sum to `total`: sums so far are rounded down."""
    sums = np.floor(np.cumsum(weights) / weights.sum() * total + 1e-9).astype(np.int64)
    sums[-1] = total
    return [int(one) for one in np.diff(sums, prepend=0)]


def make_edges(open_us: int, close_us: int, intervals: int) -> tuple[int, ...]:
    """Return the edges of equal intervals, in whole microseconds."""
    refuse_unless(intervals >= 1, "intervals", intervals, "1 or more")
    return tuple(open_us + (close_us - open_us) * place // intervals for place in range(intervals + 1))


def make_u_curve(open_us: int, close_us: int, intervals: int, day_shares: int) -> VolumeCurve:
    """Return a curve that is high at open and close, low at noon: an assumption, where no intraday volume is known."""
    edges = make_edges(open_us, close_us, intervals)
    middles = (np.arange(intervals) + 0.5) / intervals
    weights = U_FLOOR + U_RISE * (2 * middles - 1) ** 4
    return VolumeCurve(edges, tuple(spread_whole(weights, day_shares)))


def learn_curve(open_us: int, close_us: int, volume_shares: NDArray[np.int64], day_shares: int) -> VolumeCurve:
    """Return the mean shape of past sessions, scaled to `day_shares`.

    Parameters
    ----------
    open_us, close_us
        The session that is to be traded.
    volume_shares
        Whole shares `[D, N]` of past sessions, a row each, in equal intervals. Each session counts alike, whatever it
        traded; sessions without volume are left out.
    day_shares
        Expected volume of the session.
    """
    days = volume_shares.sum(axis=1, keepdims=True)
    known = volume_shares[days[:, 0] > 0] / days[days[:, 0] > 0]
    refuse_unless(len(known) > 0, "volume_shares", volume_shares.shape, "a session with volume")
    edges = make_edges(open_us, close_us, volume_shares.shape[1])
    return VolumeCurve(edges, tuple(spread_whole(known.mean(axis=0), day_shares)))
