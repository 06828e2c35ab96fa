"""Compute the values of formulas by the engine, and of Python factors by the sandbox.

`Computing` has the interface of an engine. A formula cannot read the future and is computed at once. Python code sees
only the days that it may know, and values on later days are computed day by day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...factors import Engine, Expression
from ...factors.engine import EXPRESSIONS_PER_STREAM
from ...market import SHARE_COUNT_FIELDS, Panel, has_unsafe_volume_levels
from ..errors import NeedsSandbox, PythonRefused
from .contained import Contained, DailyValues

UNCONTAINED_CODE, UNSHOWN_DAYS_CODE, VOLUME_LEVELS_CODE = "uncontained", "unshown_days", "volume_levels"
"""Codes of three warnings: the code ran uncontained, was not shown to be causal on all days, saw no level of
volumes."""
UNSHOWN_DAYS_MESSAGE = (
    "the code raises an error on panels of {days} days or fewer, so that nothing is shown of the days before {day}: "
    "they have no values and do not count"
)
VOLUME_LEVELS_MESSAGE = (
    "volumes may be in shares of a later day, so the code was shown each name's volume and amount from 1,000,000 on "
    "its first day; where they are as traded, say so: market.volumes: quoted"
)

Values = NDArray[np.float32]


class Computes(Protocol):
    """Computes the values of factors on a panel: an engine, if all are formulas, or a `Computing`."""

    @property
    def panel(self) -> Panel:
        """Return the panel that factors are computed on."""

    def evaluate(self, expressions: Sequence[Expression]) -> list[Values]:
        """Compute factors, one array `[T, N]` for each, in order."""

    def stream(self, expressions: Iterable[Expression]) -> Iterator[Values]:
        """Yield the values of any number of factors, a few at a time, in order."""


@dataclass(frozen=True, eq=False)
class Computing:
    """Computes factors of one panel.

    Attributes
    ----------
    engine : Engine
        Computes formulas.
    contained : Contained or None
        Computes Python factors; without it they are refused.
    days : int or None
        Number of days that a call of Python code sees; its values after them are NaN. None: all.
    forgives : tuple of type
        Refusals of Python code that give NaN on all days instead of an error.
    seed : int or None
        Seed of the days on which Python code is screened; None draws one at each screening.
    """

    engine: Engine
    contained: Contained | None = None
    days: int | None = None
    forgives: tuple[type[PythonRefused], ...] = ()
    seed: int | None = None

    @property
    def panel(self) -> Panel:
        """Return the panel that factors are computed on."""
        return self.engine.panel

    def until(self, days: int, seed: int | None = None) -> Computing:
        """Return a copy in which Python code sees only the first days, and the seed chooses the screened days."""
        return replace(self, days=days, seed=seed)

    def forgiving(self, *kinds: type[PythonRefused]) -> Computing:
        """Return a copy in which Python code that is refused in one of these ways is NaN on all days."""
        return replace(self, forgives=kinds)

    def on(self, panel: Panel, cache_bytes: int = 0) -> Computing:
        """Return a copy for another panel."""
        return Computing(Engine(panel, cache_bytes=cache_bytes), self.contained and self.contained.on(panel))

    def evaluate(self, expressions: Sequence[Expression]) -> list[Values]:
        """Return the values of factors, `[T, N]` each, in order; NaN missing and outside the universe.

        Raises
        ------
        PanelLacksField
            A formula reads a column that the panel does not have.
        PythonRefused
            Python code gave no values.
        NeedsSandbox
            There is Python code and nothing to contain it.
        """
        formulas = iter(self.engine.evaluate([expression for expression in expressions if not expression.code]))
        return [self._compute_code(expression) if expression.code else next(formulas) for expression in expressions]

    def stream(self, expressions: Iterable[Expression], *, together: int = EXPRESSIONS_PER_STREAM) -> Iterator[Values]:
        """Yield the values of any number of factors, a few at a time, in order; see `Engine.stream`."""
        waiting = iter(expressions)
        while group := list(islice(waiting, together)):
            yield from self.evaluate(group)

    def screen(self, expression: Expression) -> None:
        """Refuse Python code that reads later days at a few cuts; for a formula the parser has shown it.

        Raises
        ------
        PythonRefused
            At the stage ``causal`` or ``python``.
        """
        if expression.code:
            self._require_contained().screen(expression, self._shown_days, self.seed)

    def sweep(self, expression: Expression, edges: Sequence[int], since: int = 0) -> DailyValues:
        """Compute a factor up to the last edge, each day's value without later days; see `Contained.sweep`."""
        if expression.code:
            return self._require_contained().sweep(expression, edges, since)
        return DailyValues(self.engine.evaluate([expression])[0])

    def stamp_of(self, expression: Expression) -> str:
        """Return the warning that a factor's code ran uncontained; empty if it did not."""
        return self.contained.stamp if expression.code and self.contained else ""

    def stamped(self, expression: Expression, sheet: dict[str, Any]) -> dict[str, Any]:
        """Return a factor's metrics with the warnings that every figure of code must carry."""
        messages = {
            UNCONTAINED_CODE: self.stamp_of(expression),
            UNSHOWN_DAYS_CODE: self._warn_of_unshown_days(expression),
        }
        if expression.fields & {*SHARE_COUNT_FIELDS} and has_unsafe_volume_levels(self.panel) and expression.code:
            messages[VOLUME_LEVELS_CODE] = VOLUME_LEVELS_MESSAGE
        warnings = [{"code": code, "message": message} for code, message in messages.items() if message]
        return sheet | {"warnings": [*sheet["warnings"], *warnings]} if warnings else sheet

    def _warn_of_unshown_days(self, expression: Expression) -> str:
        """Return the warning about days on which the screen could not test the code; empty if there are none."""
        days = self.contained.start_up(expression, self._shown_days) if expression.code and self.contained else 0
        return UNSHOWN_DAYS_MESSAGE.format(days=days, day=self.panel.dates[days]) if days else ""

    @property
    def _shown_days(self) -> int:
        return self.panel.days if self.days is None else self.days

    def _compute_code(self, expression: Expression) -> Values:
        try:
            return self._require_contained().values(expression, self._shown_days).copy()
        except PythonRefused as error:
            if type(error) not in self.forgives:
                raise
            return np.full(self.panel.universe.shape, np.nan, np.float32)

    def _require_contained(self) -> Contained:
        if self.contained is None:
            raise NeedsSandbox(
                "Python factors need the sandbox, and there is none here.",
                field="sandbox",
                hint="Ask what this machine lacks: alphaloom sandbox status. Formulas need none.",
            )
        return self.contained
