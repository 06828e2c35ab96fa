"""Sheets of a campaign's formulas that the workers of a cluster compute."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from ...factors import Expression
from ...sandbox import Crew, SandboxError
from .formula_bench import BATCH_FORMULAS, BenchParts, MeasuredFormula

MAX_SHEETS_AHEAD = 1024
"""Formulas that were asked for ahead and may wait; the oldest is forgotten, and computed again if it is wanted."""

Pending = tuple[Future[list[MeasuredFormula]], int]


class RemoteSheets:
    """Asks the workers of a cluster for sheets: those that are probably wanted next in batches, others one by one.

    A sheet is the one that this process would compute. So a cluster that fails costs time only: this process then
    computes the remaining sheets.
    """

    def __init__(self, hire: Callable[[BenchParts], Crew], pack: Callable[[], BenchParts]) -> None:
        self._hire, self._pack = hire, pack
        self._crew: Crew | None = None
        self._pending: OrderedDict[str, Pending] = OrderedDict()
        self._lock, self._lost = threading.Lock(), False

    def hire(self, *, dialect: str) -> Crew:
        """Return other workers of the cluster, for formulas of a dialect that were not proposed by a search."""
        parts = self._pack()
        settings = (parts.panel, parts.settings, parts.window, parts.sketches)
        return self._hire(BenchParts(*settings, dialect=dialect, by_hand=True))

    def ask(self, expressions: Sequence[Expression]) -> None:
        """Begin to compute the sheets of formulas that will probably be scored next, spread over the workers."""
        with self._lock:
            wanted = [one for one in expressions if not one.code and one.id not in self._pending]
            if not wanted or self._lost:
                return
            crew = self._open()
            size = min(BATCH_FORMULAS, -(-len(wanted) // crew.workers))
            for start in range(0, len(wanted), size):
                self._submit(crew, wanted[start : start + size])

    def take(self, expression: Expression) -> dict[str, Any] | None:
        """Return the sheet of a formula; None where this process must compute it, because the workers did not."""
        with self._lock:
            if expression.code or self._lost:
                return None
            if expression.id not in self._pending:
                self._submit(self._open(), [expression])
            future, place = self._pending.pop(expression.id)
        try:
            measured = future.result()[place]
        except SandboxError as error:
            self._report_lost(error)
            return None
        is_same = measured.factor_id == expression.id and measured.sheet is not None
        return dict(measured.sheet) if is_same and measured.sheet is not None else None

    def _open(self) -> Crew:
        if self._crew is None:
            self._crew = self._hire(self._pack())
        return self._crew

    def _submit(self, crew: Crew, expressions: Sequence[Expression]) -> None:
        future = crew.submit([expression.text for expression in expressions])
        for place, expression in enumerate(expressions):
            self._pending[expression.id] = future, place
        while len(self._pending) > MAX_SHEETS_AHEAD:
            self._pending.popitem(last=False)

    def _report_lost(self, error: SandboxError) -> None:
        with self._lock:
            if not self._lost:
                self._lost = True
                warnings.warn(f"formulas are scored in this process from now on: {error.message}", stacklevel=3)
