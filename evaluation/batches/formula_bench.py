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
from ...evidence.scoring import Exposures, Scorer, round_significant
from ...evidence.values import Computes, Computing
from ...factors import Engine, Expression, FactorError, ParseError, parse, row_rank_correlation
from ...market import Panel, adjust_forwards

Values = NDArray[np.float32]

BATCH_FORMULAS = 16
"""Formulas of a batch: enough to share subexpressions, few enough that their values fit in memory."""
CODE_IN_FILE_MESSAGE = "Python code is scored one factor at a time: alphaloom factor score FILE.py"
MIN_SCREEN_T = 3.0
HIGH_TURNOVER = 2 / 3
"""Share of a sleeve that is replaced at its end; for white noise it is four fifths."""
MAX_EXPOSURE_CORRELATION = 0.5
MIN_RANK_IC_LEFT = 0.5
"""Share of RankIC that should remain: of the one-day figure at ten days, and of the mean without the best year."""
EXPOSURE_STEP_DAYS = 5
EXPOSURES = {"beta": "beta", "size": "size", "volatility": "volatility", "momentum": "momentum", "price": "price level"}


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


def _make_weakness(code: str, value: float, message: str) -> dict[str, Any]:
    return {"code": code, "value": round_significant(value), "message": message}


def name_weaknesses(
    sheet: Mapping[str, Any], values: NDArray[np.float32], exposures: Exposures, window: Window
) -> list[dict[str, Any]]:
    """Return the named weaknesses of a factor on the search window, each `{code, value, message}`.

    `values` are the factor's `[T, N]`, NaN missing. The codes:

    - `weak`: |t| below 3;
    - `turnover`: over two thirds of a sleeve are replaced at its end; the value is one-way turnover per day over gross;
    - `costs`: a positive return before costs is lost after them;
    - `decay`: less than half of the one-day RankIC remains at ten days;
    - `one_year`: less than half of the RankIC remains without the best year;
    - `exposure`: mean rank correlation with beta, size, volatility, momentum or price level beyond 0.5.
    """
    weaknesses = _name_from_figures(sheet)
    curve = sheet["decay"]
    first, tenth = curve.get("1"), curve.get("10")
    if first and tenth is not None and abs(first) > 0.01 and tenth / first < MIN_RANK_IC_LEFT:
        message = f"less than half of the one-day RankIC remains at ten days ({tenth / first:.0%})"
        weaknesses.append(_make_weakness("decay", tenth / first, message))
    weaknesses += _name_one_year(sheet)
    weaknesses += _name_exposures(values, exposures, window)
    return weaknesses


def _name_from_figures(sheet: Mapping[str, Any]) -> list[dict[str, Any]]:
    weaknesses = []
    t = sheet["t"] or 0.0
    if abs(t) < MIN_SCREEN_T:
        message = f"|t| = {abs(t):.1f} in sample, below the screening threshold of {MIN_SCREEN_T:g}"
        weaknesses.append(_make_weakness("weak", t, "t is undefined in sample" if sheet["t"] is None else message))
    turnover = sheet["turnover"] or 0.0
    if turnover * sheet["horizon_days"] > HIGH_TURNOVER:
        threshold = HIGH_TURNOVER / sheet["horizon_days"]
        message = f"{turnover:.0%} of the book is traded each day (threshold {threshold:.0%})"
        weaknesses.append(_make_weakness("turnover", turnover, message))
    gross, net = sheet["gross_sharpe"], sheet["net_sharpe"]
    if gross is not None and net is not None and gross > 0.3 and net <= 0:
        weaknesses.append(_make_weakness("costs", net, f"Sharpe {gross:+.2f} before costs, {net:+.2f} after costs"))
    return weaknesses


def _name_one_year(sheet: Mapping[str, Any]) -> list[dict[str, Any]]:
    years = [value for value in sheet["by_year"].values() if value is not None]
    mean = sheet["rank_ic"]
    if not mean or len(years) < 3:
        return []
    signed = sorted(value * (1 if mean > 0 else -1) for value in years)
    share = float(np.mean(signed[:-1])) / abs(mean)
    message = f"less than half of the RankIC remains without the best year ({share:.0%})"
    return [_make_weakness("one_year", share, message)] if share < MIN_RANK_IC_LEFT else []


def _name_exposures(values: NDArray[np.float32], exposures: Exposures, window: Window) -> list[dict[str, Any]]:
    weaknesses = []
    thin = np.ascontiguousarray(window.cut(values)[::EXPOSURE_STEP_DAYS])
    for name, word in EXPOSURES.items():
        exposure = np.ascontiguousarray(window.cut(getattr(exposures, name))[::EXPOSURE_STEP_DAYS])
        daily = row_rank_correlation(thin, exposure)
        mean = float(np.nanmean(daily)) if not np.isnan(daily).all() else 0.0
        if abs(mean) > MAX_EXPOSURE_CORRELATION:
            message = f"exposure to {word}: rank correlation {mean:.2f} (threshold {MAX_EXPOSURE_CORRELATION:g})"
            weaknesses.append(_make_weakness("exposure", mean, message))
    return weaknesses
