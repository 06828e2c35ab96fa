"""One factor, or one set, on a card: the hypothesis, the formula, the evidence, the verdict with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ..figures import DASH, any_value, basis_points, count, describe_added_value, number, p_value_text, percent
from ..profile import profile_rows
from .plots import Bars, Curve, LineChart, bar_chart, line_chart
from .request import collect_doubts

__all__ = ["Card", "GateStep", "card", "find_deciding_step"]

DEFLATED_LABELS = {
    "by_trials": "deflated Sharpe, trials",
    "by_evaluations": "… evaluations",
    "by_clusters": "… clusters",
}
DEFLATED_MEANS = (
    "The deflated Sharpe is of this factor's own book after costs, as if it were the best of so many tries: all evaluated ones were "
    "chosen from on search days, and the gate tests the RankIC on selection days. It decides nothing, and a low one beside an "
    "acceptance says that the book alone is no proof."
)
MIN_MERIT_CHANCE = 0.005
"""Chance that a Sharpe ratio is more than the luckiest of so many tries, below which it is said to be less."""


@dataclass(frozen=True)
class GateStep:
    """One step of the gate; `mark` is passed, failed or shown (a step that never blocks)."""

    step: str
    mark: str
    message: str
    numbers: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Card:
    """What is printed for one accepted or watched factor or set."""

    id: str
    kind: str
    statement: str
    mechanism: str
    facts: Sequence[tuple[str, str]]
    text: str
    explained: str
    members: Sequence[tuple[str, str]]
    measures: Sequence[tuple[str, str, str]]
    cumulative: str
    quintiles: str
    decay: str
    years: str
    reasons: Sequence[GateStep]
    doubts: Sequence[str]
    warnings: Sequence[str]
    deflated: str


def card(entry: Mapping[str, Any], curve: Mapping[str, Any], boundary: str | None, texts: Mapping[str, str]) -> Card:
    """Return the card of an entry; `boundary` is the first selection day, `texts` the formulas of possible members."""
    hypothesis, metrics = entry.get("hypothesis") or {}, entry.get("metrics") or {}
    search, selection = metrics.get("search") or {}, metrics.get("selection") or {}
    members = [(str(name), texts.get(str(name), "")) for name in entry.get("members") or ()]
    return Card(
        id=str(entry["id"]),
        kind=f"set of {len(members)}" if members else "factor",
        statement=str(hypothesis.get("statement") or ("A set of factors" if members else "No hypothesis stated")),
        mechanism=str(hypothesis.get("mechanism") or "").replace("_", " "),
        facts=_facts(entry, hypothesis),
        text="" if members else str(entry.get("text") or ""),
        explained=str(entry.get("explained") or ""),
        members=members,
        measures=_measures(search, selection),
        cumulative=_cumulative(curve, boundary),
        quintiles=_quintiles(search, selection),
        decay=_decay(search, selection),
        years=_years(search, selection),
        reasons=[_reason(item) for item in entry.get("reasons") or ()],
        doubts=[str(item.get("message") or item.get("code")) for item in search.get("weaknesses") or ()]
        + list(collect_doubts(entry)),
        warnings=_warnings(search, selection),
        deflated=DEFLATED_MEANS if selection.get("deflated_sharpe") else "",
    )


def find_deciding_step(entry: Mapping[str, Any]) -> GateStep | None:
    """Return the step that refused an entry: the first that failed."""
    return next((reason for reason in map(_reason, entry.get("reasons") or ()) if reason.mark == "failed"), None)


def _facts(entry: Mapping[str, Any], hypothesis: Mapping[str, Any]) -> list[tuple[str, str]]:
    direction = {1: "higher values, higher returns", -1: "higher values, lower returns"}
    facts = [
        ("trial", f"no. {count(entry['trial'])}" if entry.get("trial") is not None else DASH),
        ("largest correlation with the library at the close", number(entry.get("library_correlation"), 2, sign=True)),
    ]
    if entry.get("incremental"):
        facts.append(("beside the library, on search", describe_added_value(entry["incremental"])))
    facts += profile_rows({key: value for key, value in (entry.get("profile") or {}).items() if key != "decay"})
    rank_ic = ((entry.get("metrics") or {}).get("search") or {}).get("rank_ic")
    if rank_ic is not None and rank_ic < 0:
        facts.append(("held", "reversed: its low values are bought"))
    if hypothesis:
        facts.append(("expected", direction.get(hypothesis.get("direction", 0), DASH)))
        facts.append(("over", f"{any_value(hypothesis.get('horizon_days'))} days"))
    if hypothesis.get("refuted_by"):
        facts.append(("would be refuted by", any_value(hypothesis["refuted_by"])))
    return facts


def _measures(search: Mapping[str, Any], selection: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    rows = [
        ("RankIC a day", [number(w.get("rank_ic"), 4, sign=True) for w in (search, selection)]),
        ("t, Newey-West", [number(w.get("t"), 2, sign=True) for w in (search, selection)]),
        (
            "p, one-sided, of a mean constant in the window",
            [p_value_text(w.get("p_value")) for w in (search, selection)],
        ),
        ("IC", [number(w.get("ic"), 4, sign=True) for w in (search, selection)]),
        ("ICIR, of RankIC", [number(w.get("icir"), 2, sign=True) for w in (search, selection)]),
        ("turnover a day", [percent(w.get("turnover")) for w in (search, selection)]),
        ("Sharpe before costs", [number(w.get("gross_sharpe"), 2, sign=True) for w in (search, selection)]),
        ("Sharpe after costs", [number(w.get("net_sharpe"), 2, sign=True) for w in (search, selection)]),
        *_deflated_rows(search, selection),
        ("coverage", [percent(w.get("coverage"), 0) for w in (search, selection)]),
        ("days", [count(w.get("days")) for w in (search, selection)]),
    ]
    return [(label, left, right) for label, (left, right) in rows if (left, right) != (DASH, DASH)]


def _deflated_rows(*windows: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the deflated Sharpe with every count: trials, factors that were evaluated, and clusters of them."""
    found = [value if isinstance(value := w.get("deflated_sharpe"), Mapping) else {"by_trials": value} for w in windows]
    return [(label, [_chance_of_merit(row.get(key)) for row in found]) for key, label in DEFLATED_LABELS.items()]


def _chance_of_merit(share: float | None) -> str:
    """Return a deflated Sharpe ratio as the chance that it is; one near zero with what that says."""
    said = percent(share, 0).replace(" ", "\N{NO-BREAK SPACE}")  # the cell may be folded, the figure may not
    return f"{said}, below the best expected by chance" if share is not None and share < MIN_MERIT_CHANCE else said


def _cumulative(curve: Mapping[str, Any], boundary: str | None) -> str:
    lines: list[Curve] = []
    total = 0.0
    for kind in ("search", "selection"):
        window = curve.get(kind) or {}
        days, values = _accumulate_days(window, total)
        if values:
            total = values[-1]
            lines.append(Curve(kind, days, values))
    reached = boundary is not None and any(line.kind == "selection" for line in lines)
    marks = [(date.fromisoformat(boundary), "selection")] if boundary and reached else []
    return line_chart(LineChart("Cumulative daily RankIC", lines, lambda value: number(value, 0), marks))


def _accumulate_days(window: Mapping[str, Any], start: float) -> tuple[list[date], list[float]]:
    """Add up the daily values; a day without one adds nothing and is not drawn."""
    days: list[date] = []
    values: list[float] = []
    for day, value in zip(window.get("dates") or (), window.get("rank_ic") or (), strict=False):
        if value is not None:
            start += float(value)
            days.append(date.fromisoformat(day))
            values.append(start)
    return days, values


def _series(
    search: Sequence[float | None], selection: Sequence[float | None]
) -> list[tuple[str, Sequence[float | None]]]:
    return [
        (kind, row) for kind, row in (("search", search), ("selection", selection)) if any(v is not None for v in row)
    ]


def _quintiles(search: Mapping[str, Any], selection: Mapping[str, Any]) -> str:
    names = ["low", "2", "3", "4", "high"]
    rows = [list(window.get("quantile_returns") or []) for window in (search, selection)]
    padded = [row if len(row) == len(names) else [None] * len(names) for row in rows]
    return bar_chart(Bars("Mean return by quintile", names, _series(*padded), basis_points))


def _decay(search: Mapping[str, Any], selection: Mapping[str, Any]) -> str:
    names = sorted({*(search.get("decay") or {}), *(selection.get("decay") or {})}, key=int)
    rows = [[(window.get("decay") or {}).get(name) for name in names] for window in (search, selection)]
    return bar_chart(Bars("RankIC by horizon in days", names, _series(*rows), lambda value: number(value, 3)))


def _years(search: Mapping[str, Any], selection: Mapping[str, Any]) -> str:
    names = sorted({*(search.get("by_year") or {}), *(selection.get("by_year") or {})})
    rows = [[(window.get("by_year") or {}).get(name) for name in names] for window in (search, selection)]
    short = [f"'{name[-2:]}" for name in names]
    return bar_chart(Bars("RankIC by year", short, _series(*rows), lambda value: number(value, 3)))


def _reason(item: Mapping[str, Any]) -> GateStep:
    passed = item.get("passed")
    mark = "shown" if passed is None else "passed" if passed else "failed"
    numbers = item.get("numbers") or {}
    pairs = numbers.items() if isinstance(numbers, Mapping) else enumerate(numbers)
    shown = [(str(key).replace("_", " "), any_value(value)) for key, value in pairs]
    return GateStep(str(item.get("step") or ""), mark, str(item.get("message") or ""), shown)


def _warnings(*windows: Mapping[str, Any]) -> list[str]:
    """Return the doubts that belong to this factor; those about the data stand once, at the top."""
    found = [item for window in windows for item in window.get("warnings") or () if item.get("code") != "data"]
    return list(dict.fromkeys(str(item.get("message") or item.get("code")) for item in found))
