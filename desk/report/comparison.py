"""Two factors side by side: the rows of both sheets, what each adds to the other, and an HTML file without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..cli.options import data_line
from ..figures import DASH, basis_points, count, describe_added_value, describe_costs, number, percent
from ..profile import profile_rows
from .cards import accumulate_days, spread_sum, spread_years
from .factor_page import describe_strength, draw_decay, draw_exposures, draw_regimes, list_warnings
from .plots import Bars, Curve, LineChart, bar_chart, line_chart

if TYPE_CHECKING:
    from ...evaluation.closing import ComparedSheet, FactorComparison, SharedPart


Rows = Sequence[tuple[str, str, str]]
MIN_ADDED_T = 2.0
"""Absolute t from which a factor counts as adding to the other."""
QUINTILES = ("low", "2", "3", "4", "high")
STYLES = ("first", "second")
"""Style of the lines and bars of A and B."""


@dataclass(frozen=True)
class ComparedFactor:
    """One of the two factors on the page."""

    letter: str
    style: str
    id: str
    text: str
    explained: str
    strength: str
    warnings: Sequence[str]


@dataclass(frozen=True)
class PairDrawings:
    """The drawings of two factors, A and B beside each other."""

    cumulative: str
    quintiles: str
    decay: str
    years: str
    regimes: str
    exposures: str


@dataclass(frozen=True)
class ComparisonPage:
    """The content of the template."""

    title: str
    sentence: str
    data: str
    synthetic: bool
    factors: Sequence[ComparedFactor]
    together: Sequence[tuple[str, str]]
    rows: Rows
    words: Rows
    cumulative: str
    quintiles: str
    decay: str
    years: str
    regimes: str
    exposures: str
    costs: str
    data_notes: Sequence[str]


def build_comparison_page(record: Mapping[str, Any]) -> ComparisonPage:
    """Return the page of a comparison, the JSON of `alphaloom factor compare --json`."""
    from ...evaluation.closing import FactorComparison

    pair = FactorComparison.read(record)
    series = list(zip(STYLES, (pair.a, pair.b), strict=True))
    notes = [note for sheet in (pair.a, pair.b) for note in list_warnings(sheet)[1]]
    rows = list_sheet_rows(pair)
    return ComparisonPage(
        title="Two factors on the same days",
        sentence=describe_pair(pair),
        data=data_line(record["data"]),
        synthetic=bool(record["data"]["synthetic"]),
        factors=[_describe_factor(letter, *one) for letter, one in zip("AB", series, strict=True)],
        together=list_together(pair),
        rows=[row for row in rows if row[0] in FIGURE_LABELS],
        words=[row for row in rows if row[0] not in FIGURE_LABELS],
        **vars(draw_pair(pair)),
        costs=describe_costs(pair.costs),
        data_notes=list(dict.fromkeys(notes)),
    )


def _describe_factor(letter: str, style: str, sheet: ComparedSheet) -> ComparedFactor:
    warnings, _ = list_warnings(sheet)
    return ComparedFactor(letter, style, sheet.id, sheet.text, sheet.explained, describe_strength(sheet), warnings)


def describe_pair(pair: FactorComparison) -> str:
    """Return one sentence: the rank correlation of both factors, and which of them adds to the other."""
    if pair.a.id == pair.b.id:
        return "Both are the same factor."
    adds = _adds(pair.a), _adds(pair.b)
    outcome = {
        (True, True): "each adds to the other",
        (True, False): "A adds to B, and B adds nothing significant to A",
        (False, True): "B adds to A, and A adds nothing significant to B",
        (False, False): "neither adds anything significant to the other",
    }[adds]
    correlation = number(pair.rank_correlation, 2, sign=True)
    return f"On search days the rank correlation of A and B is {correlation}; {outcome}."


def _adds(sheet: ComparedSheet) -> bool:
    """Tell whether the residual on the other factor is significant, with the sign of the factor's own RankIC."""
    beside = sheet.beside
    same_sign = (beside.rank_ic or 0.0) * (sheet.rank_ic or 0.0) > 0
    return beside.t is not None and abs(beside.t) >= MIN_ADDED_T and same_sign


def list_together(pair: FactorComparison) -> list[tuple[str, str]]:
    """Return label and text of what concerns both factors."""
    return [
        ("rank correlation of values", number(pair.rank_correlation, 3, sign=True)),
        ("A beside B", _describe_beside(pair.a, "B")),
        ("B beside A", _describe_beside(pair.b, "A")),
        ("shared structure", _describe_shared(pair.shared)),
    ]


def _describe_beside(sheet: ComparedSheet, other: str) -> str:
    beside = sheet.beside
    if beside.t is None:
        return f"nothing is left beside {other}"
    figures = f"RankIC {number(beside.rank_ic, 4, sign=True)}, t {number(beside.t, 2, sign=True)}"
    return f"{figures}; {percent(beside.kept, 0)} of its rank variance is unexplained by {other}"


def _describe_shared(shared: SharedPart) -> str:
    if not shared.part:
        return "none"
    near = "" if shared.exact else ", with slightly different numbers"
    return f"{percent(shared.ratio, 0)}: {shared.part}{near}"


FIGURE_LABELS = (
    "RankIC",
    "t, Newey-West",
    "IC",
    "ICIR, of RankIC",
    "turnover a day",
    "Sharpe before costs",
    "Sharpe after costs",
    "direction held",
    "coverage",
    "days",
)


def list_sheet_rows(pair: FactorComparison) -> list[tuple[str, str, str]]:
    """Return label, text of A and text of B; rows that neither has are left out."""
    first, second = (_list_figures(sheet) | dict(_list_words(sheet)) for sheet in (pair.a, pair.b))
    labels = dict.fromkeys([*first, *second])
    rows = [(label, first.get(label, DASH), second.get(label, DASH)) for label in labels]
    return [row for row in rows if row[1:] != (DASH, DASH)]


def _list_figures(sheet: ComparedSheet) -> dict[str, str]:
    texts = (
        number(sheet.rank_ic, 4, sign=True),
        number(sheet.t, 2, sign=True),
        number(sheet.ic, 4, sign=True),
        number(sheet.icir, 2, sign=True),
        percent(sheet.turnover),
        number(sheet.gross_sharpe, 2, sign=True),
        number(sheet.net_sharpe, 2, sign=True),
        "reversed: low values are bought" if (sheet.rank_ic or 0.0) < 0 else "as written",
        percent(sheet.coverage, 0),
        count(sheet.days),
    )
    return dict(zip(FIGURE_LABELS, texts, strict=True))


def _list_words(sheet: ComparedSheet) -> list[tuple[str, str]]:
    return [*profile_rows(sheet), ("beside the library", describe_added_value(sheet.incremental))]


# Drawings: the bars and lines of A and B beside each other.

Series = Sequence[tuple[str, "ComparedSheet"]]


def draw_pair(pair: FactorComparison) -> PairDrawings:
    """Return the drawings of two factors."""
    series = list(zip(STYLES, (pair.a, pair.b), strict=True))
    return PairDrawings(
        cumulative=_draw_cumulative(series),
        quintiles=_draw_quintiles(series),
        decay=draw_decay(series),
        years=_draw_years(series),
        regimes=draw_regimes(series),
        exposures=draw_exposures(series),
    )


def _draw_cumulative(series: Series) -> str:
    lines = []
    for style, sheet in series:
        days, values = accumulate_days(sheet.daily, 0.0)
        lines.append(Curve(style, days, values, spread=spread_sum(sheet, len(days))))
    return line_chart(LineChart("Cumulative daily RankIC of A and B", lines, lambda value: number(value, 0)))


def _draw_quintiles(series: Series) -> str:
    rows = [
        (style, sheet.quantile_returns if len(sheet.quantile_returns) == len(QUINTILES) else [None] * len(QUINTILES))
        for style, sheet in series
    ]
    return bar_chart(Bars("Mean return by quintile", QUINTILES, rows, basis_points))


def _draw_years(series: Series) -> str:
    years = sorted({year for _, sheet in series for year in sheet.by_year})
    rows = [(style, [sheet.by_year.get(year) for year in years]) for style, sheet in series]
    short = [f"'{year[-2:]}" for year in years]
    spreads = [spread_years(sheet.daily, years, sheet.horizon_days or 1) for _, sheet in series]
    return bar_chart(Bars("RankIC by year", short, rows, lambda value: number(value, 3), spreads=spreads))
