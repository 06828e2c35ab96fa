"""Compile every kernel in advance, so that the first formulas need not wait."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..kernels.kernel_cache import describe_processor, find_cache_folder
from ..language.node import Node, call_node, field_node, group_node
from ..language.operator import Argument
from ..operators import OPERATORS
from .engine import Engine
from .ranks import rank_rows, row_rank_correlation
from .workers import count_usable_cores

if TYPE_CHECKING:
    from ...market import Panel


def warm_up(progress: Callable[[str], None] | None = None) -> None:
    """Compile every kernel that an earlier process has not compiled yet; on two cores, with a second process.

    Machine code is stored in the user's cache folder (or `NUMBA_CACHE_DIR`) and loaded when a formula first needs it;
    where the folder cannot be written, it lasts as long as the process.

    Parameters
    ----------
    progress : callable, optional
        Called with a line after each step: ``compiled 12 of 63``. Not called if everything is compiled already.
    """
    complete = Path(find_cache_folder()) / "complete.txt"
    if _is_complete(complete):
        return
    steps = list(_steps())
    second = _start_second_process() if count_usable_cores() > 1 else None
    try:
        for number, step in enumerate((*steps[0::2], *steps[1::2]), start=1):
            if number == len(steps[0::2]) + 1 and second is not None:
                second.wait()
            step()
            if progress is not None:
                progress(f"compiled {number} of {len(steps)}")
    finally:
        if second is not None:
            second.kill()
            second.wait()
    with contextlib.suppress(OSError):
        _mark_complete(complete)


def _is_complete(complete: Path) -> bool:
    """Return whether every kernel has been compiled for this processor, numba and Python."""
    try:
        return describe_processor() in complete.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False


def _mark_complete(complete: Path) -> None:
    """Record that every kernel has been compiled, if machine code was stored."""
    if complete.parent.is_dir():
        with complete.open("a", encoding="utf-8") as lines:
            lines.write(describe_processor() + "\n")


def _start_second_process() -> subprocess.Popen[bytes] | None:
    """Start a process that compiles the other half of the kernels; if it fails, this one does them all."""
    try:
        return subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        return None


def _steps() -> Iterator[Callable[[], object]]:
    """Yield calls that together use every kernel, with the argument types of the engine."""
    engine = Engine(_build_smallest_panel(), cache_bytes=0, threads=1)
    for name, operator in OPERATORS.items():
        if operator.compute:
            yield partial(engine.compute, [_build_example(name)])
    for kind in (np.float32, np.float64):
        values = np.ones((2, 2), kind)
        yield partial(rank_rows, values)
        yield partial(row_rank_correlation, values, values)


def _build_example(name: str) -> Node:
    """Make a call of an operator on a column, with the lowest numbers that it allows."""
    operator = OPERATORS[name]
    args = [group_node("group") if argument.kind == "group" else field_node("close") for argument in operator.nodes]
    return call_node(name, *args, params={argument.name: _choose_number(argument) for argument in operator.numbers})


def _choose_number(argument: Argument) -> float:
    if argument.name == "window":
        return 2.0
    return argument.default if argument.default is not None else max(argument.low, 0.0)


def _build_smallest_panel() -> Panel:
    """Make a panel of three days and two names."""
    from ...market import Panel

    dates = np.datetime64("2020-01-01") + np.arange(3)
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    fields = {name: values for name in ("open", "high", "low", "close", "volume")}
    return Panel.build(dates, ("A", "B"), fields, groups={"group": ("a", "b")})


if __name__ == "__main__":
    for compile_kernel in list(_steps())[1::2]:
        compile_kernel()
