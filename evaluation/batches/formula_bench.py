"""Score batches of formulas on the search window: one function of panel, window and settings, wherever it runs.

A campaign scores each formula with it; `factor score --file` hands it batches; the workers of a cluster build it from
`BenchParts`. The same formula gets the same sheet in each case, whatever else is in its batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...evidence import EvidenceSettings, Window
from ...evidence.gate import PriceLevelTest, compute_complexity_price
from ...evidence.originality import LibraryValues, describe_twin, values_of_published
from ...evidence.scoring import Scorer, round_significant
from ...evidence.values import Computes, Computing
from ...factors import Engine, Expression, FactorError, ParseError, parse
from ...market import Panel, adjust_forwards
from ..weaknesses import name_weaknesses

Values = NDArray[np.float32]

BATCH_FORMULAS = 16
"""Formulas of a batch: enough to share subexpressions, few enough that their values fit in memory."""
CODE_IN_FILE_MESSAGE = "Python code is scored one factor at a time: alphaloom factor score FILE.py"


class MeasuredFormula(NamedTuple):
    """The sheet of one formula, or the message why there is none; the id is empty if it could not be read."""

    factor_id: str
    sheet: Mapping[str, Any] | None
    error: str = ""


@dataclass(frozen=True)
class FormulaBench:
    """Scores formulas of one panel on the search window.

    Attributes
    ----------
    engine
        Computes formulas, on a panel whose levels know no later split.
    published
        The published factors, which a formula's values are compared with.
    dialect
        The language of the batches' texts.
    levels
        If given, a formula of a batch that reads the level of adjusted prices gets the warning `adjusted_level`, and
        each remark of the parser the warning `units`. Without it a sheet is the one that a campaign records.
    """

    engine: Computes
    scorer: Scorer
    window: Window
    published: LibraryValues
    settings: EvidenceSettings
    dialect: str = "alphaloom"
    levels: PriceLevelTest | None = None

    def measure(self, expression: Expression, values: Values) -> dict[str, Any]:
        """Return the sheet of a factor with its values `[T, N]`, its fields, weaknesses and merit."""
        sheet = self.scorer.examine(values, self.window).record()
        weaknesses = name_weaknesses(sheet, values, self.scorer.exposures, self.window) + self._name_twin(values)
        price = compute_complexity_price(expression, self.settings.complexity)
        merit = abs(float(cast("float", sheet["t"] or 0.0))) - price
        return {
            **sheet,
            "fields": sorted(expression.fields),
            "weaknesses": weaknesses,
            "merit": round_significant(merit),
        }

    def _name_twin(self, values: Values) -> list[dict[str, Any]]:
        """Return the weakness "known" of values that rank the names as a published factor does."""
        twin = self.published.beyond(values, self.settings.max_redundancy)
        if twin is None:
            return []
        return [{"code": "known", "message": describe_twin(twin), "value": round_significant(twin.rank_correlation)}]

    def __call__(self, texts: Sequence[str]) -> list[MeasuredFormula]:
        """Return a sheet or an error for each text, in order; subexpressions of the batch are computed once."""
        read = [self._read(text) for text in texts]
        expressions = [entry for entry in read if isinstance(entry, Expression)]
        measured = iter(self._measure_group(expressions))
        return [next(measured) if isinstance(entry, Expression) else entry for entry in read]

    def _read(self, text: str) -> Expression | MeasuredFormula:
        try:
            expression = parse(text, fields=self.engine.panel.fields, dialect=self.dialect)
        except ParseError as error:
            return MeasuredFormula("", None, "; ".join(mistake.message for mistake in error.mistakes))
        except FactorError as error:
            return MeasuredFormula("", None, error.message)
        return MeasuredFormula(expression.id, None, CODE_IN_FILE_MESSAGE) if expression.code else expression

    def _measure_group(self, expressions: Sequence[Expression]) -> list[MeasuredFormula]:
        """Score a group; if one of its formulas cannot be computed, each is computed alone."""
        try:
            computed = self.engine.evaluate(expressions)
            pairs = zip(expressions, computed, strict=True)
            return [MeasuredFormula(one.id, self._complete_sheet(one, values)) for one, values in pairs]
        except FactorError as error:
            if len(expressions) == 1:
                return [MeasuredFormula(expressions[0].id, None, error.message)]
            return [measured for expression in expressions for measured in self._measure_group([expression])]

    def _complete_sheet(self, expression: Expression, values: Values) -> dict[str, Any]:
        sheet = self.measure(expression, values)
        if self.levels is None:
            return sheet
        objection = self.levels.objection(expression)
        warnings = [{"code": "adjusted_level", "message": objection}] if objection else []
        warnings += [{"code": "units", "message": text} for text in expression.warnings]
        return sheet | {"warnings": [*sheet["warnings"], *warnings]}


@dataclass(frozen=True)
class BenchParts:
    """What a bench is built from in another process.

    Attributes
    ----------
    panel
        The panel that returns are computed on, as it was loaded.
    sketches
        The files of the published factors' sketches on this panel, which take seconds to compute.
    by_hand
        Whether sheets carry the warnings `adjusted_level` and `units`.
    """

    panel: Panel
    settings: EvidenceSettings
    window: Window
    sketches: Mapping[str, bytes]
    dialect: str = "alphaloom"
    by_hand: bool = False

    def build(self) -> FormulaBench:
        """Return the bench; it computes with one thread, since each core of the node has a worker."""
        engine = Computing(Engine(adjust_forwards(self.panel, self.window.stop), threads=1))
        with TemporaryDirectory(prefix="alphaloom-") as folder:
            published = values_of_published(engine, self.window, Path(folder), self.settings)
            published.restore_sketches(self.sketches)
        levels = PriceLevelTest(engine.panel, self.window, engine) if self.by_hand else None
        scorer = Scorer(self.panel, self.settings)
        return FormulaBench(engine, scorer, self.window, published, self.settings, self.dialect, levels)
