"""Where the accepted factors break: rows of disasters, columns of factors, and in each cell what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..cli.factor.stress_table import format_share_kept
from ..figures import number, short_id
from .svg import drawing, element

__all__ = ["StressPage", "stress_page"]

MATRIX_WIDTH, LABEL_WIDTH, CELL_WIDTH, ROW_HEIGHT, HEAD_HEIGHT, BAND_HEIGHT = 960.0, 318.0, 62.0, 20.0, 52.0, 27.0
FACTORS_PER_MATRIX = 5
"""Factors that stand beside each other in one picture."""
SECOND_COLUMN = {"history": "net Sharpe", "regime": "net Sharpe", "data": "values left", "fill": "net Sharpe"}
BAND_TITLES = {
    "history": "Historical stretches",
    "regime": "Synthetic regimes",
    "data": "Spoiled data",
    "fill": "Fills and costs",
}
COMPARISON_NOTE = "Stretches are compared with all other days, the rest with the same days as they were."
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class StressPage:
    """What the report prints of stress: a sentence for each factor, pictures of five factors each, and the rule."""

    sentences: Sequence[tuple[str, str]]
    matrices: Sequence[str]
    rule: str


def stress_page(results: Mapping[str, Any]) -> StressPage | None:
    """Return what the report prints; nothing for a run that accepted nothing or is older than this."""
    told = results.get("stress") or {}
    factors = sorted((told.get("factors") or {}).items())
    if not factors:
        return None
    window = told.get("window") or {}
    days = f"On the search window's days only, {window.get('first')} to {window.get('last')}; seed {told.get('seed')}."
    return StressPage(
        sentences=[(short_id(name), str(found.get("sentence"))) for name, found in factors],
        matrices=[
            _matrix(factors[start : start + FACTORS_PER_MATRIX]) for start in range(0, len(factors), FACTORS_PER_MATRIX)
        ],
        rule=f"{COMPARISON_NOTE} {days} {told.get('rule')}",
    )


def _matrix(factors: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Draw the heat table."""
    columns = [_by_code(found.get("scenarios") or ()) for _, found in factors]
    pieces = [piece for k, (name, found) in enumerate(factors) for piece in _head(name, found, k)]
    y, group = HEAD_HEIGHT, ""
    for code, row in _all_rows(columns).items():
        if row["group"] != group:
            group = str(row["group"])
            pieces += _band(group, y, len(factors))
            y += BAND_HEIGHT
        pieces.append(element("text", _name(row), class_="axis", x=0.0, y=y + 14.0))
        for k, column in enumerate(columns):
            pieces += _cells(column.get(code) or {}, LABEL_WIDTH + 2 * k * CELL_WIDTH, y)
        y += ROW_HEIGHT
    label = "What each accepted factor keeps under each stress, in per cent of its clean figure"
    return drawing(MATRIX_WIDTH, y + 4.0, label, pieces)


def _by_code(rows: Rows) -> dict[str, Mapping[str, Any]]:
    return {str(row.get("code")): row for row in rows}


def _all_rows(columns: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """Return each stress once, in the order of the groups and of the first factor that met it."""
    rows = {code: row for column in columns for code, row in column.items()}
    return {code: row for group in BAND_TITLES for code, row in rows.items() if row.get("group") == group}


def _head(name: str, found: Mapping[str, Any], k: int) -> list[str]:
    """Draw a factor's id and its clean figures, which the column is measured by."""
    clean, x = found.get("clean") or {}, LABEL_WIDTH + 2 * k * CELL_WIDTH
    return [
        element("text", short_id(name), class_="strong", x=x + CELL_WIDTH, y=16.0, text_anchor="middle"),
        *(
            element("text", number(clean.get(key), digits), class_="axis", x=x + (at + 0.5) * CELL_WIDTH, y=36.0,
                    text_anchor="middle")
            for at, (key, digits) in enumerate((("rank_ic", 3), ("net_sharpe", 2)))
        ),
        *([element("text", "clean", class_="axis", x=0.0, y=36.0)] if k == 0 else []),
    ]  # fmt: skip


def _band(group: str, y: float, factors: int) -> list[str]:
    """Draw the line above a group: its name, and what its two columns hold."""
    pieces = [
        element("line", class_="rule", x1=0.0, x2=LABEL_WIDTH + 2 * factors * CELL_WIDTH, y1=y + 5.0, y2=y + 5.0),
        element("text", BAND_TITLES[group], class_="strong", x=0.0, y=y + 21.0),
    ]
    for k in range(factors):
        for at, word in enumerate(("RankIC", SECOND_COLUMN[group])):
            x = LABEL_WIDTH + (2 * k + at + 0.5) * CELL_WIDTH
            pieces.append(element("text", word, class_="axis", x=x, y=y + 21.0, text_anchor="middle"))
    return pieces


def _name(row: Mapping[str, Any]) -> str:
    """Return the stress in words, a historical one with its months."""
    words = str(row.get("words"))
    first, last = str(row.get("first") or "")[:7], str(row.get("last") or "")[:7]
    if not first or any(part.isdigit() for part in words.split()):
        return words
    return f"{words}, {first} to {last}" if first != last else f"{words}, {first}"


def _cells(row: Mapping[str, Any], x: float, y: float) -> list[str]:
    """Draw what is left of RankIC, and of the book or of the values."""
    pieces: list[str] = []
    for at, key in enumerate(("rank_ic", "net_sharpe")):
        figures = row.get(key)
        if figures:
            pieces += _cell(
                format_share_kept(figures.get("keeps")), str(figures.get("verdict")), x + at * CELL_WIDTH, y
            )
    left = row.get("coverage")
    if left is not None:
        silent = row.get("verdict") == "breaks" and (row.get("rank_ic") or {}).get("verdict") != "breaks"
        word = "breaks" if silent else "holds" if left >= 0.9 else "weakens"
        pieces += _cell(
            format_share_kept(left), word if row.get("verdict") != "untested" else "untested", x + CELL_WIDTH, y
        )
    return pieces


def _cell(text: str, word: str, x: float, y: float) -> list[str]:
    return [
        element("rect", class_=f"cell {word}", x=x + 1.0, y=y + 1.0, width=CELL_WIDTH - 2.0, height=ROW_HEIGHT - 2.0),
        element("text", text, class_=f"kept {word}", x=x + CELL_WIDTH / 2, y=y + 14.0, text_anchor="middle"),
    ]
