"""Scores that carry a group, each in another way, and scores that carry none: what the audit must tell apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alphaloom.evidence.proxies import AuditInput

Frame = NDArray[np.float64]
NAMES, DAYS, SHARE = 200, 60, 0.3
PERSISTENT = 0.5**0.5
"""Deviation of what stays with an asset, and of what changes each day."""


class PlantedMarket:
    """Assets with a group, a second attribute, sizes, and a persistent score that knows nothing of them."""

    def __init__(self, seed: int, names: int = NAMES, days: int = DAYS) -> None:
        self.rng = np.random.default_rng(seed)
        self.names, self.days = names, days
        self.group = (self.rng.random(names) < SHARE).astype(np.int64)
        self.second = self.rng.integers(0, 2, names)
        self.size = self.rng.normal(size=names)
        self.own = self.rng.normal(size=names)
        self.daily = self.rng.normal(size=(days, names))

    @property
    def calm(self) -> Frame:
        """Return the score without a group, `[T, N]`."""
        calm: Frame = PERSISTENT * (self.own + self.daily)
        return calm

    def asked(self, scores: Frame) -> AuditInput:
        """Return the question about some scores."""
        groups = {"group": self.group, "second": self.second}
        words = {"group": ("rest", "inside"), "second": ("left", "right")}
        return AuditInput(scores, groups, words, np.broadcast_to(self.size, scores.shape))


def _spread(market: PlantedMarket) -> Frame:
    wide: Frame = PERSISTENT * (market.own * np.where(market.group, 1.9, 1.0) + market.daily)
    return wide


def _u_shape(market: PlantedMarket) -> Frame:
    side = market.rng.choice([-1.0, 1.0], market.names)
    outer = np.where(market.group, side * (1.0 + 0.5 * abs(market.own)), market.own)
    bent: Frame = PERSISTENT * (outer + market.daily)
    return bent


def _interaction(market: PlantedMarket) -> Frame:
    return market.calm + 0.4 * (2 * market.group - 1) * (2 * market.second - 1)


def _sign_flip(market: PlantedMarket) -> Frame:
    signs = market.rng.choice([-1.0, 1.0], market.days)
    return market.calm + 0.5 * signs[:, None] * market.group


def _window(market: PlantedMarket) -> Frame:
    start = market.rng.integers(0, market.days - market.days // 6)
    inside = np.zeros(market.days)
    inside[start : start + market.days // 6] = 0.9
    return market.calm + inside[:, None] * market.group


def _tail(market: PlantedMarket) -> Frame:
    return market.calm + 3.0 * market.group * (market.rng.random(market.names) < 0.15)


def _proxy_of_proxy(market: PlantedMarket) -> Frame:
    hidden = np.where(market.rng.random(market.names) < 0.1, 1 - market.group, market.group)
    return market.calm + 0.8 * hidden


def _carried_by_size(market: PlantedMarket) -> Frame:
    market.size = market.size + 1.2 * market.group
    return market.calm + 0.8 * market.size


def make_two_factors(market: PlantedMarket) -> tuple[Frame, Frame]:
    """Return two scores that each drown a group in a common part; their sum does not have the common part."""
    common = 3.0 * market.rng.normal(size=market.names)
    other: Frame = np.tile(market.rng.normal(size=market.names) - common + 0.5 * market.group, (market.days, 1))
    return market.calm + common + 0.5 * market.group, other


Make = Callable[[PlantedMarket], Frame]
LEAKS: dict[str, Make] = {
    "mean": lambda market: market.calm + 0.5 * market.group,
    "spread": _spread,
    "U-shape": _u_shape,
    "interaction": _interaction,
    "sign flip by day": _sign_flip,
    "a window of days only": _window,
    "tail only": _tail,
    "proxy of a proxy": _proxy_of_proxy,
    "rising disguise of a mean": lambda market: np.exp(2.0 * (market.calm + 0.5 * market.group)),
    "combination of two factors": lambda market: np.add(*make_two_factors(market)),
}
HARMLESS: dict[str, Make] = {
    "noise": lambda market: market.rng.normal(size=(market.days, market.names)),
    "persistent": lambda market: market.calm,
    "carried by size alone": _carried_by_size,
}


CROSS_SECTION = {"names": 500, "days": 1}
"""The shape of the cases of one day."""
ONE_DAY: dict[str, Make] = {
    "one day: mean, 0.3 deviations": lambda market: market.daily + 0.3 * market.group,
    "one day: spread, times 1.5": lambda market: market.daily * np.where(market.group, 1.5, 1.0),
    "one day: U-shape": lambda market: np.where(
        market.group, np.sign(market.daily) * (1.0 + 0.5 * abs(market.own)), market.daily
    ),
    "one day: interaction": lambda market: market.daily + 0.4 * (2 * market.group - 1) * (2 * market.second - 1),
    "one day: none": lambda market: market.daily,
}
"""Scores of one day of 500 assets, where a single statistic may see what another one misses."""


def plant(case: str, seed: int, **shape: Any) -> AuditInput:
    """Return the question about a case's scores."""
    market = PlantedMarket(seed, **(CROSS_SECTION if case in ONE_DAY else {}) | shape)
    return market.asked({**LEAKS, **HARMLESS, **ONE_DAY}[case](market))
