"""Stress as a user meets it: formulas of one evaluation service, on its search window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...factors import Engine, Expression
from ..evaluator import Evaluator
from .outcome import RULE
from .stress import SEED, stress

__all__ = ["stress_on_search"]


def stress_on_search(evaluator: Evaluator, expressions: Sequence[Expression], seed: int = SEED) -> dict[str, Any]:
    """Put formulas through every stress on the search window, and on no other day.

    Returns
    -------
    dict
        `{window, seed, rule, factors}`, `factors` by id: `{sentence, clean, weaknesses, scenarios}`.
    """
    window = evaluator.windows.search
    panel = evaluator.panel.rows(window.start, window.stop)
    found = stress(
        lambda told: Engine(told, cache_bytes=0).evaluate(expressions), panel, evaluator.settings, seed
    )  # fmt: skip
    return {
        "window": {"name": window.name, "first": window.first_day, "last": window.last_day},
        "seed": seed,
        "rule": RULE,
        "factors": {
            expression.id: told.record() for expression, told in zip(expressions, found, strict=True)
        },
    }  # fmt: skip
