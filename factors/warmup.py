"""Compile every kernel once, so that no first formula has to wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .engine import Engine
from .node import Node, call, field_node, group
from .operators import OPERATORS
from .ranks import rank_rows, row_rank_correlation
from .signature import Argument

if TYPE_CHECKING:
    from ..market.panel import Panel


def warm_up(progress: Callable[[str], None] | None = None) -> None:
    """Compile the kernels, or load them where an earlier process has compiled them.

    They are kept on disk in the user's cache folder (or `NUMBA_CACHE_DIR`); where nothing can be written they last as
    long as the process.

    Parameters
    ----------
    progress : callable, optional
        Called with a line after each step: ``compiled 12 of 63``.
    """
    steps = list(_steps())
    for done, step in enumerate(steps, start=1):
        step()
        if progress is not None:
            progress(f"compiled {done} of {len(steps)}")


def _steps() -> Iterator[Callable[[], object]]:
    """Yield calls that between them need every kernel, each with the types that the engine hands over."""
    engine = Engine(_smallest_panel(), cache_bytes=0, threads=1)
    for name, operator in OPERATORS.items():
        if operator.compute:
            yield partial(engine.compute, [_example(name)])
    for kind in (np.float32, np.float64):
        values = np.ones((2, 2), kind)
        yield partial(rank_rows, values)
        yield partial(row_rank_correlation, values, values)


def _example(name: str) -> Node:
    """Make a step of an operator from a column and the lowest numbers that it allows."""
    operator = OPERATORS[name]
    args = [group("group") if argument.kind == "group" else field_node("close") for argument in operator.nodes]
    return call(name, *args, params={argument.name: _number(argument) for argument in operator.numbers})


def _number(argument: Argument) -> float:
    if argument.name == "window":
        return 2.0
    return argument.default if argument.default is not None else max(argument.low, 0.0)


def _smallest_panel() -> Panel:
    """Make a panel of three days and two names."""
    from ..market.panel import Panel

    dates = np.datetime64("2020-01-01") + np.arange(3)
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    fields = {name: values for name in ("open", "high", "low", "close", "volume")}
    return Panel.build(dates, ("A", "B"), fields, groups={"group": ("a", "b")})
