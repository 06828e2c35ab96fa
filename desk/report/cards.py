"""A factor or a combination on a card: the hypothesis, the formula, the evidence, the verdict with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from ..figures import DASH, any_value, basis_points, count, describe_added_value, number, p_value_text, percent
from ..profile import profile_rows
from .plots import Bars, Curve, LineChart, bar_chart, line_chart

if TYPE_CHECKING:
    from ...evaluation.closing import (
        DailyRankIC,
        DailyRankICByWindow,
        FactorEntry,
        Figure,
        GateReason,
        MemberTest,
        PlantedTruth,
        SealedFactor,
        SelectionMetrics,
        WindowMetrics,
    )


DEFLATED_LABELS = {
    "by_trials": "deflated Sharpe (probability), by trials",
    "by_evaluations": "… by evaluations",
    "by_clusters": "… by clusters",
}
DEFLATED_MEANS = (
    "The deflated Sharpe is the probability that the Sharpe ratio of this factor's own book after costs exceeds the "
    "best of that many worthless tries. It is informational: the gate tests the RankIC, not the Sharpe ratio."
)
DIRECTION_WORDS = {1: "higher values, higher returns", -1: "higher values, lower returns"}
MIN_MERIT_CHANCE = 0.005
"""Deflated Sharpe ratio below which it is described as less than expected by chance."""


P_LABEL = "p, one-sided (assumes a constant mean)"
BORNE_OUT_P = 0.05


@dataclass(frozen=True)
class GateStep:
    """One step of the gate; `mark` is passed, failed or shown (for a step that never blocks)."""

    step: str
    mark: str
    message: str
    numbers: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Card:
    """The content of the card of one accepted or watched factor or combination."""

    id: str
    kind: str
    statement: str
    mechanism: str
    facts: Sequence[tuple[str, str]]
    text: str
    explained: str
    members: Sequence[tuple[str, str, str]]
    measures: Sequence[Sequence[str]]
    sealed: str
    cumulative: str
    quintiles: str
    decay: str
    years: str
    reasons: Sequence[GateStep]
    doubts: Sequence[str]
    warnings: Sequence[str]
    deflated: str


def build_card(
    entry: FactorEntry,
    curve: DailyRankICByWindow | None,
    boundary: str | None,
    texts: Mapping[str, str],
    sealed: SealedFactor | None = None,
    truth: PlantedTruth | None = None,
) -> Card:
    """Return the card of an entry.

    Parameters
    ----------
    boundary
        First selection day.
    texts
        Formulas of possible members by id.
    sealed
        The entry's figures on the sealed days, where they were opened.
    truth
        What is true of it on a synthetic market.
    """
    from ...evaluation.closing import SelectionMetrics, StatedHypothesis

    search, selection = entry.metrics.search, entry.metrics.selection or SelectionMetrics()
    hypothesis = entry.hypothesis or StatedHypothesis()
    tests = {test.id: test for test in selection.members}
    members = [
        (name, texts.get(name, ""), _describe_member(tests[name]) if name in tests else "")
        for name in entry.members or ()
    ]
    return Card(
        id=entry.id,
        kind=f"combination of {len(members)}" if members else "factor",
        statement=hypothesis.title or ("A combination of factors" if members else "No hypothesis stated"),
        mechanism="" if members or hypothesis.either_way else hypothesis.mechanism.replace("_", " "),
        facts=[*_list_facts(entry), *_list_truth(truth)],
        text="" if members else entry.text,
        explained="" if members else entry.explained,
        members=members,
        measures=_list_measures(search, selection, sealed),
        sealed=_describe_sealed(sealed),
        cumulative=_draw_cumulative(curve, boundary),
        quintiles=_draw_quintiles(search, selection),
        decay=_draw_decay(search, selection),
        years=_draw_years(search, selection),
        reasons=[_make_step(reason) for reason in entry.reasons],
        doubts=[weakness.text for weakness in search.weaknesses] + list(collect_doubts(entry)),
        warnings=_list_warnings(search, selection),
        deflated=DEFLATED_MEANS if selection.deflated_sharpe else "",
    )


def _describe_member(test: MemberTest) -> str:
    """Return what the trial of a combination says of one member: whether it is proven alone, and what it is worth."""
    word = "proven alone" if test.accepted else "proven alone, but not tradable" if test.proven else "not proven alone"
    loss = number(test.rank_ic_lost_without.selection, 4, sign=True)
    return f"{word} (p {p_value_text(test.weakest_p_value)}); RankIC lost without it {loss}"


def find_deciding_step(entry: FactorEntry) -> GateStep | None:
    """Return the step that refused an entry: the first that failed."""
    return next((step for step in map(_make_step, entry.reasons) if step.mark == "failed"), None)


def _list_facts(entry: FactorEntry) -> list[tuple[str, str]]:
    facts = [
        ("trial", f"no. {count(entry.trial)}" if entry.trial is not None else DASH),
        ("largest correlation with the library at the end of the run", number(entry.library_correlation, 2, sign=True)),
    ]
    if entry.incremental:
        facts.append(("beside the library, on search", describe_added_value(entry.incremental)))
    if entry.profile:
        facts += profile_rows(entry.profile)
    if (entry.metrics.search.rank_ic or 0.0) < 0:
        facts.append(("held", "reversed: its low values are bought"))
    hypothesis = entry.hypothesis
    if hypothesis and hypothesis.either_way:
        facts.append(("found by a survey", hypothesis.statement))
    elif hypothesis:
        facts.append(("expected", DIRECTION_WORDS.get(hypothesis.direction, DASH)))
        facts.append(("over", f"{any_value(hypothesis.horizon_days)} days"))
        if late := hypothesis.stated_after_scoring:
            beside = f"t {number(late.t, 1, sign=True)} beside its refuter {late.refuter}"
            facts.append(("mechanism", f"stated after scoring, before the test; on search {beside}"))
        if hypothesis.refuted_by:
            facts.append(("would be refuted by", any_value(hypothesis.refuted_by)))
    return facts


def _list_truth(truth: PlantedTruth | None) -> list[tuple[str, str]]:
    """Return how a factor agrees with what was planted; empty on prices of a file."""
    if truth is None:
        return []
    windows = (("selection", truth.true_on_selection), ("sealed", truth.true_on_sealed))
    figures = ", ".join(f"{number(value, 2, sign=True)} on {name}" for name, value in windows)
    plant = f"; nearest plant ({number(truth.nearest_correlation, 2, sign=True)}): {truth.nearest}" * bool(
        truth.nearest
    )
    return [("correlation with the true expected return of this synthetic market", f"{figures}{plant}")]


def is_borne_out(sealed: SealedFactor) -> bool:
    """Tell whether a factor holds on the sealed days: one test there, p at most 0.05."""
    return sealed.p_value is not None and sealed.p_value <= BORNE_OUT_P


def _describe_sealed(sealed: SealedFactor | None) -> str:
    if sealed is None or sealed.p_value is None:
        return ""
    return "holds on the sealed days" if is_borne_out(sealed) else "does not hold on the sealed days"


def _list_measures(
    search: WindowMetrics, selection: SelectionMetrics, sealed: SealedFactor | None
) -> list[Sequence[str]]:
    """Return rows of a label and a figure for search, selection and, where they were opened, the sealed days."""
    windows = (search, selection)
    turned = {} if sealed is None else _list_sealed_figures(sealed)
    rows = [
        ("RankIC a day", [number(window.rank_ic, 4, sign=True) for window in windows]),
        ("t, Newey-West", [number(window.t, 2, sign=True) for window in windows]),
        (P_LABEL, [DASH, p_value_text(selection.p_value)]),
        ("IC", [number(window.ic, 4, sign=True) for window in windows]),
        ("ICIR, of RankIC", [number(window.icir, 2, sign=True) for window in windows]),
        ("turnover a day", [percent(window.turnover) for window in windows]),
        ("Sharpe before costs", [number(window.gross_sharpe, 2, sign=True) for window in windows]),
        ("Sharpe after costs", [number(window.net_sharpe, 2, sign=True) for window in windows]),
        *_list_deflated(selection),
        ("coverage", [percent(window.coverage, 0) for window in windows]),
        ("days", [count(window.days) for window in windows]),
    ]
    shown = [(label, left, right) for label, (left, right) in rows if (left, right) != (DASH, DASH)]
    return [(*row, turned.get(row[0], DASH)) if turned else row for row in shown]


def _list_sealed_figures(sealed: SealedFactor) -> dict[str, str]:
    """Return the figures of the sealed days by their label, with the sign of the factor as written."""
    return {
        "RankIC a day": number(sealed.rank_ic, 4, sign=True),
        "t, Newey-West": number(sealed.t, 2, sign=True),
        P_LABEL: p_value_text(sealed.p_value),
        "Sharpe after costs": number(sealed.net_sharpe, 2, sign=True),
        "days": count(sealed.days),
    }


def _list_deflated(selection: SelectionMetrics) -> list[tuple[str, list[str]]]:
    """Return the deflated Sharpe for each count of tries: trials, evaluated factors, and clusters of these."""
    ratios = selection.deflated_sharpe
    if ratios is None:
        return []
    return [(label, [DASH, _format_deflated(getattr(ratios, name))]) for name, label in DEFLATED_LABELS.items()]


def _format_deflated(share: Figure) -> str:
    """Return a deflated Sharpe ratio as a percentage, with a remark if it is near zero."""
    text = percent(share, 0).replace(" ", "\N{NO-BREAK SPACE}")  # the cell may wrap, the figure may not
    return f"{text}, below the best expected by chance" if share is not None and share < MIN_MERIT_CHANCE else text


def _draw_cumulative(curve: DailyRankICByWindow | None, boundary: str | None) -> str:
    lines: list[Curve] = []
    total = 0.0
    for kind, window in (("search", curve.search), ("selection", curve.selection)) if curve else ():
        days, values = accumulate_days(window, total)
        if values:
            total = values[-1]
            lines.append(Curve(kind, days, values))
    reached = boundary is not None and any(line.kind == "selection" for line in lines)
    marks = [(date.fromisoformat(boundary), "selection")] if boundary and reached else []
    return line_chart(LineChart("Cumulative daily RankIC", lines, lambda value: number(value, 0), marks))


def accumulate_days(window: DailyRankIC, start: float) -> tuple[list[date], list[float]]:
    """Return the cumulative daily values; days without a value are left out."""
    days: list[date] = []
    values: list[float] = []
    for day, value in zip(window.dates, window.rank_ic, strict=False):
        if value is not None:
            start += value
            days.append(date.fromisoformat(day))
            values.append(start)
    return days, values


def _list_series(search: Sequence[Figure], selection: Sequence[Figure]) -> list[tuple[str, Sequence[Figure]]]:
    both = (("search", search), ("selection", selection))
    return [(kind, row) for kind, row in both if any(value is not None for value in row)]


def _draw_quintiles(search: WindowMetrics, selection: WindowMetrics) -> str:
    names = ["low", "2", "3", "4", "high"]
    rows = [window.quantile_returns for window in (search, selection)]
    padded = [row if len(row) == len(names) else [None] * len(names) for row in rows]
    return bar_chart(Bars("Mean return by quintile", names, _list_series(*padded), basis_points))


def _draw_decay(search: WindowMetrics, selection: WindowMetrics) -> str:
    names = sorted({*search.decay, *selection.decay}, key=int)
    rows = [[window.decay.get(name) for name in names] for window in (search, selection)]
    return bar_chart(Bars("RankIC by horizon in days", names, _list_series(*rows), lambda value: number(value, 3)))


def _draw_years(search: WindowMetrics, selection: WindowMetrics) -> str:
    names = sorted({*search.by_year, *selection.by_year})
    rows = [[window.by_year.get(name) for name in names] for window in (search, selection)]
    short = [f"'{name[-2:]}" for name in names]
    return bar_chart(Bars("RankIC by year", short, _list_series(*rows), lambda value: number(value, 3)))


def _make_step(reason: GateReason) -> GateStep:
    """Return a step as the card shows it; one that judged no formula gets no tick."""
    unjudged = reason.passed is None or (reason.passed and reason.numbers.get("judged") == 0)
    mark = "shown" if unjudged else "passed" if reason.passed else "failed"
    numbers = [(name.replace("_", " "), any_value(value)) for name, value in reason.numbers.items()]
    return GateStep(reason.step, mark, reason.message, numbers)


def _list_warnings(*windows: WindowMetrics) -> list[str]:
    """Return the warnings about this factor; those about the data are shown once, at the top of the page."""
    warnings = [warning for window in windows for warning in window.warnings if warning.code != "data"]
    return list(dict.fromkeys(warning.text for warning in warnings))


def collect_doubts(entry: FactorEntry) -> Sequence[str]:
    """Return a rule's and a model's doubts about a factor's hypothesis; they decide nothing."""
    doubting = [opinion.why for opinion in entry.alignment.opinions if opinion.verdict == "doubts"]
    return [
        *entry.alignment.doubts,
        *(f"a model doubts that it says what its hypothesis says: {why}" for why in doubting[-1:]),
    ]
