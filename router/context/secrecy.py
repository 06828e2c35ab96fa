"""How far a text may go, and what may not be kept at all."""

from __future__ import annotations

from collections.abc import Iterable

from ..calls.task import Sensitivity
from ..key_shapes import holds_key

SENSITIVITY_ORDER: tuple[Sensitivity, ...] = ("public", "internal", "confidential")


def strictest(labels: Iterable[Sensitivity]) -> Sensitivity:
    """Return the strictest of some labels; where there is none, the strictest of all."""
    return max(labels, key=SENSITIVITY_ORDER.index, default=SENSITIVITY_ORDER[-1])


def looks_secret(text: str) -> bool:
    """Tell whether a text holds what looks like a key; whatever does is taken out of logs, too."""
    return holds_key(text)
