"""A factor or a combination on a card: the hypothesis, the formula, the evidence, the verdict with its reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from ..figures import (
    DASH,
    NORMAL_QUANTILE_95,
    any_value,
    basis_points,
    count,
    describe_added_value,
    number,
    p_value_text,
    percent,
)
from ..profile import profile_rows
from .gate_steps import GateStep, list_steps
from .plots import Bars, Curve, LineChart, bar_chart, line_chart

if TYPE_CHECKING:
    from ...evaluation.closing import (
        DailyRankIC,
        DailyRankICByWindow,
        FactorEntry,
        Figure,
        MemberTest,
        PlantedTruth,
        SealedExam,
        SealedFactor,
        SelectionMetrics,
        StatedHypothesis,
        WindowMetrics,
    )


DEFLATED_LABELS = {
    "by_clusters": "deflated Sharpe, by clusters",
    "by_trials": "deflated Sharpe, by trials",
    "by_evaluations": "deflated Sharpe, by evaluations",
}
DEFLATED_MEANS = (
    "Deflated Sharpe: the probability that the true Sharpe ratio after costs is above the best that so many worthless "
    "tries would show. It takes their spread from this campaign's candidates, so it is too strict where many of these "
    "work. It decides nothing: the gate tests the RankIC."
)
CLUSTERS_MEANS = (
    "By clusters, the one to believe: tries are groups of candidates whose returns move together, the effective number "
    "of tries so far. By trials: the tests on selection days alone, too few. By evaluations: every scored formula with "
    "its near-copies, too many."
)
P_NOTE = (
    "p is from the distribution of t for overlapping labels on this number of days, which has fatter tails than the "
    "normal: the same t has a larger p. It takes the mean RankIC as constant over the window."
)
DRIFT_NOTE = (
    "Sharpe without drift: weights return to their targets each day free of cost. A traded book pays for that as well, "
    "so its Sharpe ratio is another one."
)
DAYS_NOTE = "Days with a label: those that have values, and whose label ends inside the window."
REFUTER_LABEL = "was that found?"
NO_REFUTER_TEST = (
    "not looked for: these are the author's words, and no test of them was run; the gate tests the factor itself. "
    "Beside a formula means: without what that formula explains. A |t| of 2 is the least that counts as an effect"
)
CASE_OTHERS = "the library and the other cases"
"""What a case is compared with: all that was accepted, and all that waits."""
DIRECTION_WORDS = {1: "higher values, higher returns", -1: "higher values, lower returns"}
MIN_CLEAR_T = 2.0
"""Absolute t below which a RankIC is described as not distinguishable from zero."""
MIN_MERIT_CHANCE = 0.005
"""Deflated Sharpe ratio below which it is shown as under one percent, since it is never zero."""

P_LABEL = "p, one-sided"
NET_LABEL = "Sharpe after costs, without drift"
DAYS_LABEL = "days with a label"
BORNE_OUT_P = 0.05


@dataclass(frozen=True)
class CardContext:
    """What a card shows beside the entry itself.

    Attributes
    ----------
    boundary
        First selection day.
    texts, hypotheses
        Formulas and stated hypotheses of possible members by id; an empty hypothesis is none.
    sealed
        The entry's figures on the sealed days, where they were opened.
    truth
        What is true of it on a synthetic market.
    is_case
        Whether it waits for a person: then the others beside it are the library and the cases that wait.
    """

    boundary: str | None
    texts: Mapping[str, str]
    hypotheses: Mapping[str, str] = field(default_factory=dict)
    sealed: SealedFactor | None = None
    truth: PlantedTruth | None = None
    is_case: bool = False


@dataclass(frozen=True)
class CardMember:
    """One member of a combination: formula, hypothesis, and what the trial says of it."""

    id: str
    text: str
    hypothesis: str
    is_mined: bool
    standing: str


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
    members: Sequence[CardMember]
    measures: Sequence[Sequence[str]]
    sealed: str
    cumulative: str
    quintiles: str
    decay: str
    years: str
    reasons: Sequence[GateStep]
    doubts: Sequence[str]
    warnings: Sequence[str]
    notes: Sequence[str]


def build_card(entry: FactorEntry, curve: DailyRankICByWindow | None, context: CardContext) -> Card:
    """Return the card of an entry."""
    from ...evaluation.closing import SelectionMetrics, StatedHypothesis

    search, selection = entry.metrics.search, entry.metrics.selection or SelectionMetrics()
    hypothesis = entry.hypothesis or StatedHypothesis()
    members = _list_members(entry, context)
    unstated = [member.id for member in members if member.is_mined]
    return Card(
        id=entry.id,
        kind=f"combination of {len(members)}" if members else "factor",
        statement=hypothesis.title or ("A combination of factors" if members else "No hypothesis stated"),
        mechanism="" if members or hypothesis.either_way else hypothesis.mechanism.replace("_", " "),
        facts=[*_list_facts(entry, is_case=context.is_case), *_list_truth(context.truth)],
        text="" if members else entry.text,
        explained="" if members else entry.explained,
        members=members,
        measures=_list_measures(search, selection, context.sealed),
        sealed=_describe_sealed(context.sealed),
        cumulative=_draw_cumulative(curve, context.boundary, (search, selection)),
        quintiles=_draw_quintiles(search, selection),
        decay=_draw_decay(search, selection),
        years=_draw_years(search, selection, curve),
        reasons=list_steps(entry, unstated),
        doubts=[*list_weak_points(entry), *collect_doubts(entry)],
        warnings=_list_warnings(search, selection),
        notes=_list_notes(selection),
    )


def _list_notes(selection: SelectionMetrics) -> list[str]:
    """Return what the figures of a card mean, where it shows them."""
    tested = [] if selection.p_value is None else [P_NOTE]
    deflated = selection.deflated_sharpe
    means = [DEFLATED_MEANS] if deflated else []
    means += [CLUSTERS_MEANS] if deflated and deflated.by_clusters is not None else []
    return [*tested, DRIFT_NOTE, DAYS_NOTE, *means]


def _list_members(entry: FactorEntry, context: CardContext) -> list[CardMember]:
    selection = entry.metrics.selection
    tests = {test.id: test for test in selection.members} if selection else {}
    return [
        CardMember(
            id=name,
            text=context.texts.get(name, ""),
            hypothesis=context.hypotheses.get(name, ""),
            is_mined=context.hypotheses.get(name) == "",
            standing=_describe_member(tests[name], entry) if name in tests else "",
        )
        for name in entry.members or ()
    ]


def _describe_member(test: MemberTest, entry: FactorEntry) -> str:
    """Return what the trial of a combination says of one member: whether it is proven alone, and what it is worth."""
    word = "proven alone" if test.accepted else "proven alone, but not tradable" if test.proven else "not proven alone"
    standing = f"{word} (p {p_value_text(test.weakest_p_value)})"
    selection, loss = entry.metrics.selection, test.rank_ic_lost_without.selection
    if selection is None or selection.rank_ic is None or loss is None:
        return standing
    without = number(selection.rank_ic - loss, 4)
    return f"{standing}; without it, on selection: RankIC {without} instead of {number(selection.rank_ic, 4)}"


def _list_facts(entry: FactorEntry, *, is_case: bool) -> list[tuple[str, str]]:
    own = ", its own members included" if entry.members else ""
    nearest = f"largest correlation with {CASE_OTHERS if is_case else 'the library at the close'}{own}"
    facts = [
        ("trial", f"no. {count(entry.trial)}" if entry.trial is not None else DASH),
        (nearest, number(entry.library_correlation, 2, sign=True)),
    ]
    if entry.incremental:
        is_own = entry.members and {*entry.incremental.against} <= {*entry.members}
        beside = "its own members" if is_own else CASE_OTHERS if is_case else "the library"
        facts.append((f"adds to {beside}, on search", describe_added_value(entry.incremental, beside)))
    if entry.profile:
        facts += profile_rows(entry.profile)
    if (entry.metrics.search.rank_ic or 0.0) < 0:
        facts.append(("direction held", "reversed: its low values are bought"))
    hypothesis = entry.hypothesis
    if hypothesis and hypothesis.either_way:
        facts.append(("found by a survey", hypothesis.statement))
    elif hypothesis:
        facts.append(("expected", DIRECTION_WORDS.get(hypothesis.direction, DASH)))
        facts.append(("over", f"{any_value(hypothesis.horizon_days)} days"))
        if hypothesis.stated_after_scoring:
            facts.append(("mechanism", "stated after scoring, before the test"))
        if hypothesis.refuted_by:
            facts.append(("would be refuted by", any_value(hypothesis.refuted_by)))
        if refuter := describe_refuter(hypothesis):
            facts.append((REFUTER_LABEL, refuter))
    return facts


def describe_refuter(hypothesis: StatedHypothesis) -> str:
    """Return whether what would refute a hypothesis was looked for, and found; empty where nothing is named."""
    from ...evidence.originality import MIN_ADDED_T

    late = hypothesis.stated_after_scoring
    if late is None:
        return NO_REFUTER_TEST if hypothesis.refuted_by and not hypothesis.either_way else ""
    if late.t is None or late.rank_ic is None:
        return f"yes: beside the rival formula {late.refuter} nothing is left on search days"
    holds = late.rank_ic * hypothesis.direction > 0 and abs(late.t) >= MIN_ADDED_T
    left = f"RankIC {number(late.rank_ic, 4, sign=True)}, t {number(late.t, 1, sign=True)}"
    bar = f"the claimed sign and |t| of {number(MIN_ADDED_T, 0)} or more are asked"
    return f"{'no' if holds else 'yes'}: beside the rival formula {late.refuter} it keeps {left} on search days; {bar}"


def _list_truth(truth: PlantedTruth | None) -> list[tuple[str, str]]:
    """Return how a factor agrees with what was planted; empty on prices of a file."""
    if truth is None:
        return []
    windows = (("selection", truth.true_on_selection), ("sealed", truth.true_on_sealed))
    figures = ", ".join(f"{number(value, 2, sign=True)} on {name}" for name, value in windows)
    likeness = number(truth.nearest_correlation, 2, sign=True)
    planted = f"; nearest formula put into this market ({likeness}): {truth.nearest}" if truth.nearest else ""
    return [("correlation with the true expected return (synthetic market)", f"{figures}{planted}")]


def is_borne_out(sealed: SealedFactor | SealedExam) -> bool:
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
        (NET_LABEL, [number(window.net_sharpe, 2, sign=True) for window in windows]),
        *_list_deflated(selection),
        ("coverage", [percent(window.coverage, 0) for window in windows]),
        (DAYS_LABEL, [count(window.days) for window in windows]),
    ]
    shown = [(label, left, right) for label, (left, right) in rows if (left, right) != (DASH, DASH)]
    return [(*row, turned.get(row[0], DASH)) if turned else row for row in shown]


def _list_sealed_figures(sealed: SealedFactor) -> dict[str, str]:
    """Return the figures of the sealed days by their label, with the sign of the factor as written."""
    return {
        "RankIC a day": number(sealed.rank_ic, 4, sign=True),
        "t, Newey-West": number(sealed.t, 2, sign=True),
        P_LABEL: p_value_text(sealed.p_value),
        NET_LABEL: number(sealed.net_sharpe, 2, sign=True),
        DAYS_LABEL: count(sealed.days),
    }


def _list_deflated(selection: SelectionMetrics) -> list[tuple[str, list[str]]]:
    """Return the deflated Sharpe for each count of tries: clusters of evaluated factors, trials, and evaluations."""
    ratios = selection.deflated_sharpe
    if ratios is None:
        return []
    return [(label, [DASH, _format_deflated(getattr(ratios, name))]) for name, label in DEFLATED_LABELS.items()]


def _format_deflated(share: Figure) -> str:
    """Return a deflated Sharpe ratio as a percentage."""
    text = "under 1 %" if share is not None and share < MIN_MERIT_CHANCE else percent(share, 0)
    return text.replace(" ", "\N{NO-BREAK SPACE}")  # the cell may wrap, the figure may not


def _draw_cumulative(
    curve: DailyRankICByWindow | None, boundary: str | None, metrics: tuple[WindowMetrics, WindowMetrics]
) -> str:
    lines: list[Curve] = []
    total = 0.0
    windows = (("search", curve.search, metrics[0]), ("selection", curve.selection, metrics[1])) if curve else ()
    for kind, window, figures in windows:
        days, values = accumulate_days(window, total)
        if values:
            total = values[-1]
            lines.append(Curve(kind, days, values, spread=spread_sum(figures, len(days))))
    reached = boundary is not None and any(line.kind == "selection" for line in lines)
    marks = [(date.fromisoformat(boundary), "selection")] if boundary and reached else []
    return line_chart(LineChart("Cumulative daily RankIC", lines, lambda value: number(value, 0), marks))


def spread_sum(figures: WindowMetrics, days: int) -> list[float]:
    """Return half the width of a 95 % band around the sum of the first 1, 2, ... daily values; empty if unknown.

    The Newey-West error of the mean, which allows for overlapping labels, gives the deviation of one day.
    """
    if not figures.t or figures.rank_ic is None or not figures.days:
        return []
    daily = abs(figures.rank_ic / figures.t) * math.sqrt(figures.days)
    return [NORMAL_QUANTILE_95 * daily * math.sqrt(day) for day in range(1, days + 1)]


def spread_years(curve: DailyRankIC, years: Sequence[str], horizon: int) -> list[Figure]:
    """Return half the width of a 95 % interval of the mean of each year's daily values; None where undefined."""
    from ...evidence import LAG_PER_HORIZON, newey_west_t

    lag = LAG_PER_HORIZON * horizon
    spreads: list[Figure] = []
    for year in years:
        days = zip(curve.dates, curve.rank_ic, strict=False)
        daily = [value for day, value in days if day.startswith(year) and value is not None]
        error = newey_west_t(daily, lag).standard_error if len(daily) > lag else math.nan
        spreads.append(NORMAL_QUANTILE_95 * error if math.isfinite(error) else None)
    return spreads


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


def _draw_years(search: WindowMetrics, selection: WindowMetrics, curve: DailyRankICByWindow | None) -> str:
    names = sorted({*search.by_year, *selection.by_year})
    rows = [[window.by_year.get(name) for name in names] for window in (search, selection)]
    short = [f"'{name[-2:]}" for name in names]
    series = _list_series(*rows)
    daily = {"search": curve.search, "selection": curve.selection} if curve else {}
    horizon = search.horizon_days or 1
    spreads = [spread_years(daily[kind], names, horizon) for kind, _ in series] if daily else []
    return bar_chart(Bars("RankIC by year", short, series, lambda value: number(value, 3), spreads=spreads))


def _list_warnings(*windows: WindowMetrics) -> list[str]:
    """Return the warnings about this factor; those about the data are shown once, at the top of the page."""
    warnings = [warning for window in windows for warning in window.warnings if warning.code != "data"]
    return list(dict.fromkeys(warning.text for warning in warnings))


def list_weak_points(entry: FactorEntry) -> list[str]:
    """Return the weaknesses on search days; a share of a RankIC is one only where that RankIC is not zero."""
    search = entry.metrics.search
    clear = abs(search.t or 0.0) >= MIN_CLEAR_T
    return [weakness.text for weakness in search.weaknesses if clear or weakness.code != "one_year"]


def collect_doubts(entry: FactorEntry) -> Sequence[str]:
    """Return a rule's and a model's doubts about a factor's hypothesis; they decide nothing."""
    doubting = [opinion.why for opinion in entry.alignment.opinions if opinion.verdict == "doubts"]
    return [
        *entry.alignment.doubts,
        *(f"a model doubts that it says what its hypothesis says: {why}" for why in doubting[-1:]),
    ]
