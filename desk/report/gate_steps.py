"""The steps of the gate as a reader sees them: a mark, and a text with the figures that decided.

The gate's own messages stay as recorded, because a replay compares them. Texts here come from the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..figures import DASH, any_value, number, p_value_text, percent, plural, short_id

if TYPE_CHECKING:
    from ...evaluation.closing import AppliedSettings, FactorEntry, GateReason, SelectionMetrics

EMPTY_LIBRARY = "the library is empty"
NEAREST, OF_THE_LIBRARY = "most like ", " of the library"
ACCEPTED_HERE = "accepted on these days"
NOT_JUDGED = "not judged: no hypothesis"
SELF_EXPLAINED = ("alignment", "costs")
"""Steps whose recorded message holds their figures."""


@dataclass(frozen=True)
class GateStep:
    """One step of the gate; `mark` is passed, failed or shown (for a step that never blocks, or judged only a part)."""

    step: str
    mark: str
    message: str
    numbers: Sequence[tuple[str, str]]


def list_steps(entry: FactorEntry, unstated: Sequence[str] = ()) -> list[GateStep]:
    """Return the steps of an entry; `unstated` are the ids of its members that state no hypothesis."""
    return [_make_step(reason, entry, unstated) for reason in entry.reasons]


def find_deciding_step(entry: FactorEntry) -> GateStep | None:
    """Return the step that refused an entry: the first that failed."""
    return next((step for step in list_steps(entry) if step.mark == "failed"), None)


def _make_step(reason: GateReason, entry: FactorEntry, unstated: Sequence[str]) -> GateStep:
    """Return a step as the card shows it; one that did not judge every formula gets no tick."""
    judged = reason.numbers.get("judged")
    partly = reason.step == "alignment" and judged is not None and judged < max(len(entry.members or ()), 1)
    mark = "shown" if reason.passed is None or (reason.passed and partly) else "passed" if reason.passed else "failed"
    text = _describe(reason, entry, unstated)
    is_told = text != reason.message or reason.step in SELF_EXPLAINED
    shown: Mapping[str, object] = {} if is_told else reason.numbers
    numbers = [(name.replace("_", " "), any_value(value)) for name, value in shown.items()]
    return GateStep(reason.step, mark, text, numbers)


def _describe(reason: GateReason, entry: FactorEntry, unstated: Sequence[str]) -> str:
    if reason.step == "statistics":
        return _describe_statistics(reason, entry) or reason.message
    if reason.step == "redundancy":
        return _describe_redundancy(reason)
    if reason.step == "incremental" and ACCEPTED_HERE in reason.message and "least" in reason.numbers:
        # What had passed before this test may have waited for a person, and not have been accepted.
        left = reason.message.replace(ACCEPTED_HERE, "that had passed on these days before")
        return f"{left}; a t of {number(reason.numbers['least'], 0)} or more is asked"
    if reason.step == "alignment" and NOT_JUDGED in reason.message and unstated:
        whose = f"not judged, as no hypothesis is stated: {', '.join(map(short_id, unstated))}"
        agreement, _, _ = reason.message.partition(f"; {NOT_JUDGED}")
        return f"{agreement}; {whose}" if agreement != reason.message else whose
    return reason.message


def _describe_redundancy(reason: GateReason) -> str:
    if reason.message == EMPTY_LIBRARY:
        return "the library was empty before this trial"
    likeness, most = reason.numbers.get("rank_correlation"), reason.numbers.get("most")
    is_nearest = reason.message.startswith(NEAREST) and reason.message.endswith(OF_THE_LIBRARY)
    if likeness is None or most is None or not is_nearest:
        return reason.message
    known = short_id(reason.message.removeprefix(NEAREST).removesuffix(OF_THE_LIBRARY))
    allowed = f"{number(most, 2)} is allowed"
    return f"rank correlation {number(likeness, 2, sign=True)} with {known}, the nearest accepted or waiting; {allowed}"


def _describe_statistics(reason: GateReason, entry: FactorEntry) -> str:
    """Return the p-value against its threshold, and the RankIC that was tested against what would be significant."""
    selection = entry.metrics.selection
    if selection is None or selection.p_value is None or selection.level is None:
        return ""
    before = plural(selection.discoveries_before or 0, "earlier discovery", "earlier discoveries")
    threshold = (
        f"threshold {p_value_text(selection.level)} for trial {any_value(reason.numbers.get('trial'))} after {before}"
    )
    effect = _describe_effect(entry, selection)
    return f"p = {p_value_text(selection.p_value)} on selection ({threshold}). {effect}".strip()


def _describe_effect(entry: FactorEntry, selection: SelectionMetrics) -> str:
    """Return the tested RankIC in the direction held, and the smallest one that would have been significant."""
    power = selection.power
    if power is not None and power.test == "held" and selection.p_labels == selection.p_value:
        return "The overlapping labels do not confirm the test of the ranks held."
    sign = -1 if (entry.metrics.search.rank_ic or 0.0) < 0 else 1
    rank_ic = selection.added.rank_ic if selection.added else selection.rank_ic
    bar = "" if power is None else f"; {number(power.rank_ic_provable, 3)} or more is significant"
    if power is not None and power.test == "held" and not selection.added:
        return f"A RankIC of the ranks held of {number(power.rank_ic_provable, 3)} or more is significant."
    if rank_ic is None:
        return ""
    figure = number(sign * rank_ic, 3)
    if not selection.beside:
        return f"Its RankIC there is {figure}{bar}."
    missing = f" ({len(selection.not_removed)} more cannot be computed here)" if selection.not_removed else ""
    others = plural(len(selection.beside), "formula")
    return f"What it adds there to {others} tested or accepted before{missing} has a RankIC of {figure}{bar}."


def describe_limit(reason: GateReason, settings: AppliedSettings | None) -> tuple[str, str]:
    """Return what a step measured and its limit, as text; dashes for a step that measures nothing."""
    numbers = reason.numbers
    if reason.step == "complexity":
        return _describe_size(numbers, settings)
    if reason.step == "search" and "t" in numbers:
        return f"t {number(numbers['t'], 1, sign=True)}", DASH
    if reason.step == "support" and "days" in numbers:
        return f"{percent(numbers['days'], 0)} of days", f"at least {percent(numbers.get('least'), 0)}"
    if reason.step == "originality" and "ratio" in numbers:
        return percent(numbers["ratio"], 0), f"at most {percent(numbers.get('most'), 0)}"
    if reason.step in ("redundancy", "published") and "rank_correlation" in numbers:
        return number(numbers["rank_correlation"], 2, sign=True), f"at most {number(numbers.get('most'), 2)} either way"
    if reason.step == "incremental" and "t" in numbers:
        return f"t {number(numbers['t'], 1, sign=True)}", f"at least {number(numbers.get('least'), 1)}"
    if reason.step == "statistics" and "p_value" in numbers:
        return f"p = {p_value_text(numbers['p_value'])}", f"at most {p_value_text(numbers.get('level'))}"
    if reason.step == "costs" and "search" in numbers:
        pair = (numbers["search"], numbers.get("selection"))
        return " and ".join(number(value, 2, sign=True) for value in pair), "neither below 0"
    return DASH, DASH


def _describe_size(numbers: Mapping[str, object], settings: AppliedSettings | None) -> tuple[str, str]:
    bounds = settings.evidence.complexity if settings else None
    size = f"{any_value(numbers.get('nodes'))} nodes, {any_value(numbers.get('depth'))} deep" if numbers else DASH
    if bounds is None or bounds.max_size is None:
        return size, DASH
    return size, f"at most {any_value(bounds.max_size)} nodes, {any_value(bounds.max_depth)} deep"
