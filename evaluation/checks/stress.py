"""Stress as a user meets it: formulas of one evaluation service, on its search window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evidence import OverLimits, PythonRefused
from ...evidence.stress import STRESS_RULE_TEXT, STRESS_SEED, After, run_stress_tests
from ...factors import Expression
from ...market import Panel, adjust_forwards, keep_members
from ..service import Evaluator

__all__ = ["stress_on_search"]


def stress_on_search(
    evaluator: Evaluator, expressions: Sequence[Expression], seed: int = STRESS_SEED, after: After | None = None
) -> dict[str, Any]:
    """Put formulas through every stress on the search window, and on no other day; `after` is as for `run_stress_tests`.

    Returns
    -------
    dict
        `{window, seed, rule, factors}`, `factors` by id: `{sentence, clean, weaknesses, scenarios}`.
    """
    window = evaluator.windows.search
    sold, level = evaluator.panel, evaluator.engine.panel
    # Without a quoted close what is traded can be told in money only at the vendor's own level, whatever that knows.
    panel = (level if "close_raw" in sold.fields else sold).rows(window.start, window.stop)
    panel = keep_members(panel)  # or the number of later names would move the draws

    def evaluate(told: Panel) -> list[NDArray[np.float32]]:
        return evaluator.engine.on(adjust_forwards(told)).forgiving(PythonRefused, OverLimits).evaluate(expressions)

    found = run_stress_tests(evaluate, panel, evaluator.settings, seed, after)
    return {
        "window": {"name": window.name, "first": window.first_day, "last": window.last_day},
        "seed": seed,
        "rule": STRESS_RULE_TEXT,
        "factors": {
            expression.id: told.record() for expression, told in zip(expressions, found, strict=True)
        },
    }  # fmt: skip
