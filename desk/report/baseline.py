"""The baseline in the report: which published formulas live on this data, and what the campaign adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..figures import DASH, count, number, percent, plural

if TYPE_CHECKING:
    from ...evaluation.closing import Baseline, BaselineAddition, CombinerFigures, PublishedFormula, Results


WINDOWS = ("search", "selection", "sealed")
NO_TRIAL_NOTE = (
    "The baseline's figures on selection days were computed after the last test. They are not a test: they accept "
    "nothing, change no threshold, and no agent sees them."
)
CHOSEN_HERE_NOTE = " The campaign's combination was accepted on the selection days, so its figures there are too good."
LIVING_NOTE = (
    "A formula lives if its |t| on search days is at least 2. Formulas that resemble each other live or fail together, "
    "so the number by chance scatters widely."
)


@dataclass(frozen=True)
class BaselineSection:
    """The tables of the section; `lines` compare the baseline with the campaign's combination, window by window."""

    sentence: str
    note: str
    lines: Sequence[Sequence[str]]
    members: Sequence[Sequence[str]]
    chosen: str
    mechanisms: Sequence[Sequence[str]]
    living_note: str


def worth_sentence(results: Results) -> str:
    """Return what the campaign adds to the published formulas; empty for a run without a baseline."""
    baseline = results.baseline
    if baseline is None:
        return ""
    if not baseline.members:
        return (
            f"None of the {_describe_computable(baseline)}, lives on the search days, so there is no baseline to "
            "compare with."
        )
    reference = f"the baseline, a combination of {plural(len(baseline.members), 'published formula')}"
    if not baseline.addition:
        return f"No combination of this campaign was tested, so it adds nothing to {reference}."
    whose = "combination" if baseline.addition_of == "accepted" else f"combination ({baseline.addition_of})"
    figures = [
        f"{_describe_addition(baseline.addition[name])} on {_name_days(name)}"
        for name in WINDOWS
        if name in baseline.addition
    ]
    return f"Beside {reference}, the campaign's {whose} adds a RankIC of {_join(figures)}."


def baseline_sentence(results: Results) -> str:
    """Return the baseline's own figures in one sentence; empty without one."""
    baseline = results.baseline
    if baseline is None or not baseline.members:
        return ""
    windows = {"search": baseline.search, "selection": baseline.selection, "sealed": baseline.sealed}
    figures = [
        f"{number(sheet.rank_ic, 4)} on {_name_days(name)} (t {number(sheet.t, 1)}, "
        f"Sharpe after costs, without drift, {number(sheet.net_sharpe, 2)})"
        for name, sheet in windows.items()
        if sheet
    ]
    return f"The baseline's RankIC is {_join(figures)}; these figures are not a test, and accept nothing."


def build_baseline(results: Results) -> BaselineSection | None:
    """Return the section; None for a run that recorded no published formulas."""
    baseline = results.baseline
    if baseline is None:
        return None
    opened = [name for name in WINDOWS if getattr(baseline, name) is not None]
    return BaselineSection(
        sentence=(
            f"{_describe_computable(baseline)}: {count(baseline.living)} live on the search days, where chance alone "
            f"would give at most {number(baseline.by_chance, 0)} on average."
        ),
        note=_write_note(baseline) if len(opened) > 1 else "",
        lines=[line for name in opened for line in _list_lines(baseline, name)],
        members=_list_members(baseline),
        chosen=f"Combiner: {baseline.combiner}; {baseline.chosen}." if baseline.chosen else "",
        mechanisms=_list_mechanisms(baseline.formulas),
        living_note=LIVING_NOTE,
    )


def _describe_computable(baseline: Baseline) -> str:
    return (
        f"{count(baseline.published)} published formulas, {count(baseline.computable)} of which this panel can compute"
    )


def _write_note(baseline: Baseline) -> str:
    return NO_TRIAL_NOTE + (CHOSEN_HERE_NOTE if baseline.addition_of == "accepted" else "")


def _describe_addition(addition: BaselineAddition) -> str:
    return f"{number(addition.rank_ic, 4)} (t {number(addition.t, 1)})"


def _name_days(window: str) -> str:
    return "sealed (hold-out) days" if window == "sealed" else f"{window} days"


def _join(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _list_lines(baseline: Baseline, window: str) -> list[Sequence[str]]:
    """Return the lines of one window: the baseline, the campaign's combination, and what that adds."""
    lines: list[Sequence[str]] = [(window, "baseline", *_list_cells(getattr(baseline, window)))]
    if addition := baseline.addition.get(window):
        added = (number(addition.rank_ic, 4, sign=True), number(addition.t, 1, sign=True), DASH)
        lines.append((window, "campaign", *_list_cells(baseline.own[window])))
        lines.append((window, "what it adds", *added))
    return lines


def _list_cells(figures: CombinerFigures | PublishedFormula) -> tuple[str, str, str]:
    """Return RankIC, t and Sharpe ratio after costs."""
    rank_ic, t = (number(figure, digits, sign=True) for figure, digits in ((figures.rank_ic, 4), (figures.t, 1)))
    return rank_ic, t, number(figures.net_sharpe, 2, sign=True)


def _list_members(baseline: Baseline) -> list[Sequence[str]]:
    """Return a line per member: name, mechanism, weight, formulas like it, RankIC, t, Sharpe after costs."""
    scores = {score.name: score for score in baseline.formulas}
    members = sorted(baseline.members, key=lambda member: (-abs(member.weight or 0.0), member.name))
    return [
        (
            member.name,
            scores[member.name].mechanism or DASH,
            number(member.weight, 3, sign=True),
            count(member.alike),
            *_list_cells(scores[member.name]),
        )
        for member in members
    ]


def _list_mechanisms(formulas: Sequence[PublishedFormula]) -> list[Sequence[str]]:
    """Return a line per mechanism, its largest |t| first: its strongest formula, how many live, and figures."""
    lines: list[Sequence[str]] = []
    counted = [score for score in formulas if not score.objection]
    for mechanism in dict.fromkeys(score.mechanism for score in counted):
        scores = [score for score in counted if score.mechanism == mechanism]
        living, best = sum(score.lives for score in scores), scores[0]
        share = f"{living} of {len(scores)} ({percent(living / len(scores), 0)})"
        strongest = f"{best.name} ({best.source})"
        lines.append((mechanism or "none documented", strongest, share, *_list_cells(best)))
    return lines
