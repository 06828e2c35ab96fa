"""What is promised of Alphaloom on planted markets, and whether a run keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .methods.campaign import NAME as OWN
from .methods.oracle import NAMES as BARS
from .table import median

__all__ = ["kept", "rivals_of"]

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
LEAST_RECALL, LEAST_LEAD, LEAST_OF_ORACLE, LEVEL = 0.8, 0.10, 0.85, 0.05


def rivals_of(rows: Rows) -> Rows:
    """Return the rows of those that search, Alphaloom and the oracles left out."""
    return {name: found for name, found in rows.items() if not name.startswith(OWN) and name not in BARS}


def kept(rows: Rows) -> list[tuple[bool, str]]:
    """Return each promise with whether it holds; none where Alphaloom, the oracle or every rival is left out."""
    rivals = rivals_of(rows)
    if OWN not in rows or BARS[0] not in rows or not rivals:
        return []
    own = {key: median(rows[OWN], key) for key in ("recall", "correlation")}
    best = {key: max((median(found, key), name) for name, found in rivals.items()) for key in own}
    oracle = median(rows[BARS[0]], "correlation")
    false, accepted = (sum(int(row.get(key, 0)) for row in rows[OWN]) for key in ("false", "accepted"))
    return [
        (own["recall"] >= LEAST_RECALL, f"recall {own['recall']:.2f}, at least {LEAST_RECALL} asked"),
        (
            own["recall"] > best["recall"][0],
            f"recall {own['recall']:.2f}, above every rival's asked: {told(best['recall'])}",
        ),
        (
            own["correlation"] >= best["correlation"][0] + LEAST_LEAD,
            (
                f"correlation {own['correlation']:.2f}, {LEAST_LEAD:.2f} above the best rival asked: "
                f"{told(best['correlation'])}"
            ),
        ),
        (
            own["correlation"] >= LEAST_OF_ORACLE * oracle,
            f"correlation {own['correlation']:.2f}, {LEAST_OF_ORACLE:.0%} of the oracle's {oracle:.2f} asked",
        ),
        (
            accepted > 0 and false <= LEVEL * accepted,
            f"false acceptances: {false} of {accepted}, {LEVEL:.0%} at most asked",
        ),
    ]


def told(best: tuple[float, str]) -> str:
    """Say a figure and whose it is."""
    return f"{best[0]:.2f}, {best[1]}"
