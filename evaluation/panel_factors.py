"""Factors on the panel of one run: formulas read with its fields, values computed within its windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..evidence import Window, Windows
from ..evidence.values import Computing, read_screening_seed
from ..factors import Expression, parse
from ..market import Panel
from ..search import SearchConstraints
from .score_log import RunLog

Values = NDArray[np.float32]


@dataclass(frozen=True)
class PanelFactors:
    """Parses the factors of a run and computes their values."""

    engine: Computing
    panel: Panel
    windows: Windows
    mandate: SearchConstraints
    log: RunLog

    @cached_property
    def search_engine(self) -> Computing:
        """Return the engine that shows code no day after the search window."""
        return self.engine.until(self.windows.search.stop, read_screening_seed(self.log.ledger, self.log.run))

    def read(self, text: str, dialect: str = "alphaloom") -> Expression:
        """Parse a formula of this panel's fields, or the code of a Python factor."""
        return parse(text, fields=self.mandate.names(self.panel.fields), dialect=dialect)

    def values(self, expression: Expression, through: Window | None = None) -> Values:
        """Return the values of a factor, `[T, N]`, NaN outside the universe.

        Values of Python code end with the search window. Through a later window they are computed day by day, only for
        factors that the gate has swept; they are NaN from the day of a fault on.
        """
        if through is None or not expression.code:
            return self.search_engine.evaluate([expression])[0]
        return self.engine.sweep(expression, self.windows.edges(through, self.panel.days)).values
