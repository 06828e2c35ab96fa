"""Stress tests of formulas on the search window of an evaluation service."""

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
    """Run every stress test on formulas over the search window only; `after` is as for `run_stress_tests`.

    Returns
    -------
    dict
        `{window, seed, rule, factors}`, `factors` by id: `{sentence, clean, weaknesses, scenarios}`.
    """
    window = evaluator.windows.search
    sold, level = evaluator.panel, evaluator.engine.panel
    # Without a quoted close, dollar volume can only be computed at the vendor's own level of volumes.
    panel = (level if "close_raw" in sold.fields else sold).rows(window.start, window.stop)
    panel = keep_members(panel)  # or the number of later names would change the random draws

    def evaluate(altered: Panel) -> list[NDArray[np.float32]]:
        return evaluator.engine.on(adjust_forwards(altered)).forgiving(PythonRefused, OverLimits).evaluate(expressions)

    results = run_stress_tests(evaluate, panel, evaluator.settings, seed, after)
    return {
        "window": {"name": window.name, "first": window.first_day, "last": window.last_day},
        "seed": seed,
        "rule": STRESS_RULE_TEXT,
        "factors": {expression.id: result.record() for expression, result in zip(expressions, results, strict=True)},
    }
