"""The volume that a session usually trades, interval by interval: what VWAP follows and a participation cap counts."""

from __future__ import annotations

from collections.abc import Sequence
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
    return VolumeCurve(edges, tuple(spread_whole(_weigh_u((np.arange(intervals) + 0.5) / intervals), day_shares)))


def make_session_curve(
    spans: Sequence[tuple[int, int]], intervals: int, day_shares: int, from_us: int = 0
) -> VolumeCurve:
    """Return the curve of `make_u_curve` over the hours of a session, or over what is left of it.

    Parameters
    ----------
    spans
        Opening and closing of each part, ascending, microseconds since 1970 in UTC. A break between two parts is an
        interval without volume.
    intervals
        Their number in the whole session, shared out by length; each part has one at least.
    day_shares
        Expected volume of the whole session.
    from_us
        Intervals that began earlier are left out, with their volume.

    Raises
    ------
    ExecutionError
        No interval is left, or a part has no length.
    """
    edges, places, weights = list[int](), list[int](), list[float]()
    whole_us, gone_us = sum(closes - opens for opens, closes in spans), 0
    for opens, closes in spans:
        if edges:
            weights.append(0.0)  # from the last close to this opening
        count = max(1, round(intervals * (closes - opens) / whole_us)) if whole_us else 1
        part = make_edges(opens, closes, count)
        middles = (np.arange(count) + 0.5) / count * (closes - opens)
        weights += [float(one) for one in _weigh_u((gone_us + middles) / max(whole_us, 1)) * (closes - opens) / count]
        edges += part
        gone_us += closes - opens
    places = [place for place, at_us in enumerate(edges[:-1]) if at_us >= from_us]
    refuse_unless(bool(places), "from_us", from_us, f"before {edges[-2]}, where the last interval begins")
    volumes = spread_whole(np.array(weights), day_shares)
    return VolumeCurve(tuple(edges[places[0] :]), tuple(volumes[places[0] :]))


def _weigh_u(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the usual volume at places of a session, from 0 at its opening to 1 at its close."""
    return U_FLOOR + U_RISE * (2 * places - 1) ** 4


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
