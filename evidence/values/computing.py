"""Values of formulas and of Python factors: the former by the engine, the latter by the sandbox.

`Computing` stands where an engine stands. A formula cannot see the future and is computed at once. Python code is shown only
the days that are asked for, and values on more days than that are computed day by day.
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
"""The codes of the warnings that nothing contained the code, that it was not shown to be causal on all days, and that it saw
no level of volumes."""
UNSHOWN_DAYS_MESSAGE = (
    "the code raises an error on panels of {days} days or fewer, so that nothing is shown of the days before {day}: they have "
    "no values and do not count"
)
VOLUME_LEVELS_MESSAGE = (
    "volumes may be in shares of a later day, so the code was shown each name's volume and amount from 1,000,000 on its first "
    "day; where they are as traded, say so: market.volumes: quoted"
)

Values = NDArray[np.float32]


class Computes(Protocol):
    """What gives the values of factors on a panel: an engine, where all are formulas, or a `Computing`."""

    @property
    def panel(self) -> Panel:
        """Return the panel that factors are computed on."""

    def evaluate(self, expressions: Sequence[Expression]) -> list[Values]:
        """Compute factors, one array `[T, N]` for each, in order."""

    def stream(self, expressions: Iterable[Expression]) -> Iterator[Values]:
        """Compute any number of factors, a few at a time, in order."""


@dataclass(frozen=True, eq=False)
class Computing:
    """Computes factors of one panel.

    Attributes
    ----------
    engine : Engine
        Computes formulas.
    contained : Contained or None
        Computes Python factors; without it they are refused, and nothing else ever runs them.
    days : int or None
        How many days a call of Python code is shown; its values after them are NaN. None: all.
    forgives : tuple of type
        Refusals of Python code in whose place it says nothing on any day.
    seed : int or None
        Of the days on which Python code is screened; None: one is drawn at each screening.
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
        """Return the same with Python code shown only the first days, and screened on days that a seed chooses."""
        return replace(self, days=days, seed=seed)

    def forgiving(self, *kinds: type[PythonRefused]) -> Computing:
        """Return the same, but Python code that is refused in one of these ways says nothing on any day."""
        return replace(self, forgives=kinds)

    def on(self, panel: Panel, cache_bytes: int = 0) -> Computing:
        """Return the same for another panel."""
        return Computing(Engine(panel, cache_bytes=cache_bytes), self.contained and self.contained.on(panel))

    def evaluate(self, expressions: Sequence[Expression]) -> list[Values]:
        """Compute factors, one array `[T, N]` for each, in order; NaN where a value is missing and outside the universe.

        Raises
        ------
        PanelLacksField
            A formula reads a column that the panel does not have.
        PythonRefused
            Python code gave no values.
        NeedsSandbox
            There is Python code and nothing to contain it.
        """
        formulas = iter(self.engine.evaluate([each for each in expressions if not each.code]))
        return [self._compute_code(each) if each.code else next(formulas) for each in expressions]

    def stream(self, expressions: Iterable[Expression], *, together: int = EXPRESSIONS_PER_STREAM) -> Iterator[Values]:
        """Compute any number of factors, a few at a time, in order; see `Engine.stream`."""
        waiting = iter(expressions)
        while group := list(islice(waiting, together)):
            yield from self.evaluate(group)

    def screen(self, expression: Expression) -> None:
        """Refuse Python code that sees later days at a few cuts; a formula is proven by its intervals.

        Raises
        ------
        PythonRefused
            At the stage ``causal`` or ``python``.
        """
        if expression.code:
            self._jail().screen(expression, self._days, self.seed)

    def sweep(self, expression: Expression, edges: Sequence[int], since: int = 0) -> DailyValues:
        """Compute a factor up to the last edge with every day's value free of later days; see `Contained.sweep`."""
        if expression.code:
            return self._jail().sweep(expression, edges, since)
        return DailyValues(self.engine.evaluate([expression])[0])

    def stamp_of(self, expression: Expression) -> str:
        """Return what must stand beside a factor's values: that its code ran uncontained; else nothing."""
        return self.contained.stamp if expression.code and self.contained else ""

    def stamped(self, expression: Expression, sheet: dict[str, Any]) -> dict[str, Any]:
        """Return a factor's sheet with the warnings that must stand beside every figure of code."""
        said = {UNCONTAINED_CODE: self.stamp_of(expression), UNSHOWN_DAYS_CODE: self._unshown(expression)}
        if expression.fields & {*SHARE_COUNT_FIELDS} and has_unsafe_volume_levels(self.panel) and expression.code:
            said[VOLUME_LEVELS_CODE] = VOLUME_LEVELS_MESSAGE
        told = [{"code": code, "message": message} for code, message in said.items() if message]
        return sheet | {"warnings": [*sheet["warnings"], *told]} if told else sheet

    def _unshown(self, expression: Expression) -> str:
        """Return what to say of days of which the screen could show nothing."""
        days = self.contained.start_up(expression, self._days) if expression.code and self.contained else 0
        return UNSHOWN_DAYS_MESSAGE.format(days=days, day=self.panel.dates[days]) if days else ""

    @property
    def _days(self) -> int:
        return self.panel.days if self.days is None else self.days

    def _compute_code(self, expression: Expression) -> Values:
        try:
            return self._jail().values(expression, self._days).copy()
        except PythonRefused as error:
            if type(error) not in self.forgives:
                raise
            return np.full(self.panel.universe.shape, np.nan, np.float32)

    def _jail(self) -> Contained:
        if self.contained is None:
            raise NeedsSandbox(
                "Python factors need the sandbox, and there is none here.", field="sandbox",
                hint="Ask what this machine lacks: alphaloom sandbox status. Formulas need none.",
            )  # fmt: skip
        return self.contained
