"""The desk's own skeletons without a search: each mechanism in turn, drawn until the allowance ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from alphaloom.agents.offline.mechanisms import fill_skeleton, load_mechanisms
from alphaloom.factors import Expression, FactorError, parse
from alphaloom.ledger import compute_digest

from ..world import Ground
from .method import Allowance, Answer, tried

__all__ = ["Skeletons"]

STREAM = 0x7E1A
IDLE_TURNS = 200
"""Turns over all skeletons after which nothing new is expected: the list is finite."""


@dataclass(frozen=True)
class Skeletons:
    """Draws every skeleton of every mechanism in turn."""

    name: str = "the desk's skeletons"
    fixed: bool = False

    def missing(self) -> str:
        """Say nothing: it always runs."""
        return ""

    def state(self) -> str:
        """Return the digest of the library of mechanisms."""
        return compute_digest(repr(load_mechanisms()))[:8]

    def search(self, ground: Ground, allowance: Allowance, seed: int) -> Answer:
        """Draw and score."""
        return tried(ground, _drawn(ground, seed), allowance)


def _drawn(ground: Ground, seed: int) -> Iterator[Expression]:
    rng = np.random.default_rng([seed, STREAM])
    fields, groups = tuple(ground.panel.fields), tuple(ground.panel.groups)
    skeletons = [
        (skeleton, [name for name in mechanism.fields if name in fields])
        for mechanism in load_mechanisms()
        if mechanism.usable((*fields, *groups))
        for skeleton in mechanism.skeletons
    ]
    for skeleton, names in skeletons * IDLE_TURNS:
        with suppress(FactorError):
            yield parse(fill_skeleton(skeleton, names, rng), fields=fields, groups=groups)
