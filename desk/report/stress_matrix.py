"""The stress tests of accepted factors: rows of scenarios, columns of factors, and the share kept in each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..figures import format_share_kept, number, short_id
from .svg import drawing, element

if TYPE_CHECKING:
    from ...evaluation.closing import CleanFigures, FactorStress, StressScenario, StressTable


LABEL_WIDTH, CELL_WIDTH, ROW_HEIGHT, HEAD_HEIGHT, BAND_HEIGHT = 318.0, 62.0, 20.0, 52.0, 27.0
RIGHT_MARGIN = 10.0
"""Room for the title of the last column, which is wider than a cell."""
FACTORS_PER_MATRIX = 5
"""Factors beside each other in one picture."""
SECOND_COLUMN = {"history": "net Sharpe", "regime": "net Sharpe", "data": "values left", "fill": "net Sharpe"}
BAND_TITLES = {
    "history": "Historical stretches",
    "regime": "Synthetic regimes",
    "data": "Spoiled data",
    "fill": "Fills and costs",
}
COMPARISON_NOTE = "Stretches are compared with all other days, the rest with the same days as they were."
MIN_COVERAGE_HOLDS = 0.9
"""Share of cells with a value from which a factor on spoiled data holds."""


@dataclass(frozen=True)
class StressPage:
    """The report's section on stress: a sentence for each factor, pictures, and the rule.

    `matrices` are pictures of up to five factors beside each other, with their width in pixels; `single` are those of
    one factor each, for narrow screens, and empty where there is one factor.
    """

    sentences: Sequence[tuple[str, str]]
    matrices: Sequence[tuple[str, float]]
    single: Sequence[tuple[str, float]]
    rule: str


def build_stress_page(stress: StressTable | None) -> StressPage | None:
    """Return the section; None for a run that accepted nothing or did not record it."""
    factors = sorted(stress.factors.items()) if stress else []
    if stress is None or not factors:
        return None
    window = stress.window
    days = f"On the search window's days only, {window.first} to {window.last}; seed {stress.seed}."
    return StressPage(
        sentences=[(short_id(name), factor.sentence) for name, factor in factors],
        matrices=_draw_matrices(factors, FACTORS_PER_MATRIX),
        single=_draw_matrices(factors, 1) if len(factors) > 1 else [],
        rule=f"{COMPARISON_NOTE} {days} {stress.rule}",
    )


def _draw_matrices(factors: Sequence[tuple[str, FactorStress]], beside: int) -> list[tuple[str, float]]:
    """Draw so many factors beside each other in a picture, and return each picture with its width."""
    groups = [factors[start : start + beside] for start in range(0, len(factors), beside)]
    widths = [LABEL_WIDTH + 2 * len(group) * CELL_WIDTH + RIGHT_MARGIN for group in groups]
    return [(_draw_matrix(group, width), width) for group, width in zip(groups, widths, strict=True)]


def _draw_matrix(factors: Sequence[tuple[str, FactorStress]], width: float) -> str:
    """Draw the heat table."""
    columns = [{scenario.code: scenario for scenario in factor.scenarios} for _, factor in factors]
    pieces = [piece for k, (name, factor) in enumerate(factors) for piece in _draw_head(name, factor.clean, k)]
    y, group = HEAD_HEIGHT, ""
    for code, scenario in _list_scenarios(columns).items():
        if scenario.group != group:
            group = scenario.group
            pieces += _draw_band(group, y, len(factors))
            y += BAND_HEIGHT
        pieces.append(element("text", _describe_scenario(scenario), class_="axis", x=0.0, y=y + 14.0))
        for k, column in enumerate(columns):
            if code in column:
                pieces += _draw_cells(column[code], LABEL_WIDTH + 2 * k * CELL_WIDTH, y)
        y += ROW_HEIGHT
    label = "What each accepted factor keeps under each stress, in per cent of its clean figure"
    return drawing(width, y + 4.0, label, pieces)


def _list_scenarios(columns: Sequence[Mapping[str, StressScenario]]) -> dict[str, StressScenario]:
    """Return each scenario once, in the order of the groups and of its first factor."""
    scenarios = {code: scenario for column in columns for code, scenario in column.items()}
    return {code: scenario for group in BAND_TITLES for code, scenario in scenarios.items() if scenario.group == group}


def _draw_head(name: str, clean: CleanFigures, k: int) -> list[str]:
    """Draw a factor's id and its clean figures, the reference of the column."""
    x = LABEL_WIDTH + 2 * k * CELL_WIDTH
    return [
        element("text", short_id(name), class_="strong", x=x + CELL_WIDTH, y=16.0, text_anchor="middle"),
        *(
            element("text", text, class_="axis", x=x + (at + 0.5) * CELL_WIDTH, y=36.0, text_anchor="middle")
            for at, text in enumerate((number(clean.rank_ic, 3), number(clean.net_sharpe, 2)))
        ),
        *([element("text", "clean", class_="axis", x=0.0, y=36.0)] if k == 0 else []),
    ]


def _draw_band(group: str, y: float, factors: int) -> list[str]:
    """Draw the line above a group: its name, and the titles of its two columns."""
    pieces = [
        element("line", class_="rule", x1=0.0, x2=LABEL_WIDTH + 2 * factors * CELL_WIDTH, y1=y + 5.0, y2=y + 5.0),
        element("text", BAND_TITLES[group], class_="strong", x=0.0, y=y + 21.0),
    ]
    for k in range(factors):
        for at, word in enumerate(("RankIC", SECOND_COLUMN[group])):
            x = LABEL_WIDTH + (2 * k + at + 0.5) * CELL_WIDTH
            pieces.append(element("text", word, class_="axis", x=x, y=y + 21.0, text_anchor="middle"))
    return pieces


def _describe_scenario(scenario: StressScenario) -> str:
    """Return the scenario in words; a historical one with its months."""
    first, last = (scenario.first or "")[:7], (scenario.last or "")[:7]
    if not first or any(part.isdigit() for part in scenario.words.split()):
        return scenario.words
    return f"{scenario.words}, {first} to {last}" if first != last else f"{scenario.words}, {first}"


def _draw_cells(scenario: StressScenario, x: float, y: float) -> list[str]:
    """Draw the share kept of the RankIC, and of the net Sharpe or of the values."""
    pieces: list[str] = []
    for at, figure in enumerate((scenario.rank_ic, scenario.net_sharpe)):
        if figure:
            pieces += _draw_cell(format_share_kept(figure.keeps), figure.verdict, x + at * CELL_WIDTH, y)
    if scenario.coverage is not None:
        pieces += _draw_cell(format_share_kept(scenario.coverage), _judge_coverage(scenario), x + CELL_WIDTH, y)
    return pieces


def _judge_coverage(scenario: StressScenario) -> str:
    """Return the verdict on the cells that keep a value: a factor may break only because values are missing."""
    if scenario.verdict == "untested":
        return "untested"
    if scenario.verdict == "breaks" and (scenario.rank_ic is None or scenario.rank_ic.verdict != "breaks"):
        return "breaks"
    return "holds" if (scenario.coverage or 0.0) >= MIN_COVERAGE_HOLDS else "weakens"


def _draw_cell(text: str, word: str, x: float, y: float) -> list[str]:
    return [
        element("rect", class_=f"cell {word}", x=x + 1.0, y=y + 1.0, width=CELL_WIDTH - 2.0, height=ROW_HEIGHT - 2.0),
        element("text", text, class_=f"kept {word}", x=x + CELL_WIDTH / 2, y=y + 14.0, text_anchor="middle"),
    ]
