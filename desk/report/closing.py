"""The last parts of the report: the backtest, the sealed exam, the risk gate and the spend."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from ..figures import DASH, any_value, count, money, number, p_value_text, percent, short_id
from .cards import is_borne_out
from .plots import NARROW_SCREEN, Curve, LineChart, line_chart
from .svg import Frame

if TYPE_CHECKING:
    from ...evaluation.closing import (
        BookCurve,
        BookResult,
        CombinationSummary,
        ExposureLine,
        Figure,
        GateDay,
        ModelBill,
        Results,
        RuleCheckLine,
        SealedExam,
        SignalLine,
        SignalSummary,
        SpendSummary,
        StandingLine,
    )


MAX_REFUSED_SIGNALS_SHOWN = 30
FLATTERED_NOTE = (
    "These are the selection days, the ones on which the book's factors were accepted, so its figures flatter: luck on "
    "these days helped to choose them."
)
UNCHECKED_NOTE = " No sealed day was opened to check."
CHECKED_NOTE = " The sealed days were opened later; what they said stands beside it."
PERCENT_FIGURES = ("annual_return", "max_drawdown", "turnover_per_day", "costs_paid", "borrow_paid")
BOOK_LABELS = {
    "days": "days traded",
    "sharpe": "Sharpe after costs, drift traded",
    "annual_return": "return a year",
    "max_drawdown": "largest drawdown",
    "turnover_per_day": "turnover a day",
    "costs_paid": "paid for trading, over all these days",
    "borrow_paid": "paid for borrowing, over all these days",
    "plain_sharpe": "the same Sharpe by a second program",
}
MAX_SHARPE_GAP = 0.005
"""Difference of the two programs' Sharpe ratios from which both are shown."""
KILL_SWITCH = "kill_switch"
BASIS_POINTS = 10_000
SHARE_DIGITS = 3
"""Digits of a share that is shown in per cent with one decimal."""
EVIDENCE_RULES = {
    "proven": ("factors that are not proven", False),
    "original": ("largest share of a formula that is known", True),
    "reviewed": ("factors that a person must approve and did not", False),
    "alive": ("factors that are retired, or not in the library", False),
    "contained": ("factors whose code ran without a sandbox", False),
    "unalarmed": ("factors with a leak alarm that nobody acknowledged", False),
    "unexposed": ("audited attributes that the scores carry, or that have no audit", False),
}
"""What each rule of evidence counts (combinations among the factors), and whether that is a share."""
Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class BookFigures:
    """The backtest of the combination; `equity` and `drawdown` are a wide and a narrow drawing, or empty."""

    facts: Facts
    caution: str
    unavailable: str
    equity: Sequence[str]
    drawdown: Sequence[str]
    weights: Facts


@dataclass(frozen=True)
class Risk:
    """The decision of the risk gate; exposures are in basis points of equity."""

    facts: Facts
    bounds: str
    withheld: Sequence[str]
    notes: Sequence[str]
    evidence: Sequence[tuple[str, str, str, str]]
    standings: Facts
    refused: Sequence[tuple[str, str, str]]
    more: str
    book: Sequence[tuple[str, str, str, str, str]]
    gated: Sequence[tuple[str, str, str, str, str]]
    days: Sequence[tuple[str, str, str, str, str, str, str]]


def exam_rows(exam: SealedExam | None) -> Facts:
    """Return the combination's figures on the sealed days; empty if they were not opened."""
    if exam is None or not exam.opened:
        return []
    suffix = ", of the ranks held" if exam.test == "held" else ""  # t is of the labels, so the other test is named
    p_value = (f"p, one-sided{suffix}", p_value_text(exam.p_value))
    return [
        ("RankIC", number(exam.rank_ic, 4, sign=True)),
        ("t", number(exam.t, 2, sign=True)),
        *([p_value] if "p_value" in exam.model_fields_set else []),
        ("days with a label", count(exam.days)),
        ("opening", f"no. {count(exam.number)}"),
    ]


EXAM_COLUMNS = ("factor", "RankIC", "t", "p", "by itself", "Sharpe after costs, without drift")


def exam_factor_rows(exam: SealedExam | None, combinations: Collection[str] = ()) -> list[Sequence[str]]:
    """Return a line of `EXAM_COLUMNS` for each accepted factor and member, with the sign with which it is held."""
    return [
        (
            f"{short_id(name)}, combination" if name in combinations else short_id(name),
            number(_turn(factor.rank_ic, factor.sign), 4, sign=True),
            number(_turn(factor.t, factor.sign), 2, sign=True),
            p_value_text(factor.p_value),
            DASH if factor.p_value is None else "holds" if is_borne_out(factor) else "does not hold",
            number(factor.net_sharpe, 2, sign=True),
        )
        for name, factor in sorted(exam.factors.items() if exam else ())
    ]


def _turn(value: Figure, sign: int) -> Figure:
    return None if value is None else value * sign


def describe_openings(results: Results) -> list[str]:
    """Return a sentence for each earlier opening of shared sealed days, before this run's close or its own opening."""
    earlier = (results.sealed.earlier if results.sealed else ()) or results.windows.openings
    return [
        f"Opening no. {count(opening.number)} of these days, {opening.first} to {opening.last}, was another "
        f"run's. Its reason: {opening.reason}."
        for opening in earlier
    ]


def find_refusal(results: Results) -> str:
    """Return who refused to open the sealed days, and why; empty where nobody was asked or a person agreed."""
    return next((note.message for note in results.warnings if note.code == "seal"), "")


def describe_exam(exam: SealedExam | None, refusal: str = "") -> str:
    """Return a sentence on whether this was an exam; `refusal` says why the window stayed shut."""
    if exam is None or not exam.opened:
        return "This run did not open the sealed window" + (f": {refusal}." if refusal else ".")
    first = (
        "What would be traded was tested on the sealed days, at their first opening in this workspace. Later openings "
        "are counted."
    )
    again = "These days had been opened before: this is no longer an exam on unseen data."
    why = f" Reason given: {exam.reason}." if exam.reason else ""
    return (first if exam.number == 1 else again) + why


def build_book(results: Results, curve: BookCurve | None) -> BookFigures | None:
    """Return the backtest, if anything was accepted that could be traded."""
    book = results.book
    if book is None:
        return None
    weights = _list_weights(results.combination)
    if book.unavailable:
        return BookFigures([], "", f"{book.unavailable}. {book.hint}".strip(), [], [], weights)
    return BookFigures(
        _list_book_rows(book),
        describe_book_days(book, results.sealed),
        "",
        _draw_equity(curve),
        _draw_drawdown(curve),
        weights,
    )


def describe_book_days(book: BookResult, exam: SealedExam | None) -> str:
    """Describe the days of the backtest, and the bias that follows."""
    if book.window == "selection":
        return FLATTERED_NOTE + (CHECKED_NOTE if exam and exam.opened else UNCHECKED_NOTE)
    if book.window != "sealed":
        return "It is not recorded on which days this book was traded."
    if exam and exam.number is not None and exam.number != 1:
        return (
            f"Sealed (hold-out) days, at opening no. {count(exam.number)}: "
            "they had been seen before, so they may flatter."
        )
    return "Sealed (hold-out) days: none of the book's factors was accepted on them."


def _list_book_rows(book: BookResult) -> Facts:
    return [
        (label, _format_book_figure(name, getattr(book, name)))
        for name, label in BOOK_LABELS.items()
        if name in book.model_fields_set and not (name == "plain_sharpe" and _programs_agree(book))
    ]


def _format_book_figure(name: str, value: Figure) -> str:
    if name in PERCENT_FIGURES:
        return percent(value)
    return count(value) if name == "days" else number(value, 2)


def _programs_agree(book: BookResult) -> bool:
    return abs((book.plain_sharpe or 0.0) - (book.sharpe or 0.0)) <= MAX_SHARPE_GAP


def _draw_equity(curve: BookCurve | None) -> list[str]:
    days, values = _select_known_days(curve.dates, curve.equity) if curve else ([], [])
    line = Curve("book", days, values)
    start = values[0] if values else 1.0
    chart = LineChart("Equity after costs", [line], lambda value: number(value, 3), base=start)
    return [line_chart(replace(chart, frame=frame)) for frame in (Frame(960, 200), Frame(NARROW_SCREEN, 170))]


def _draw_drawdown(curve: BookCurve | None) -> list[str]:
    days, values = _select_known_days(curve.dates, curve.drawdown) if curve else ([], [])
    line = Curve("drawdown", days, [-abs(value) for value in values], filled=True)
    chart = LineChart("Drawdown", [line], lambda value: percent(value, 0))
    return [line_chart(replace(chart, frame=frame)) for frame in (Frame(960, 110), Frame(NARROW_SCREEN, 110))]


def _select_known_days(dates: Sequence[str], values: Sequence[Figure]) -> tuple[list[date], list[float]]:
    pairs = [(date.fromisoformat(day), value) for day, value in zip(dates, values, strict=False) if value is not None]
    return [day for day, _ in pairs], [value for _, value in pairs]


def _list_weights(combination: CombinationSummary | None) -> Facts:
    weights = combination.weights if combination else {}
    return [(short_id(name), number(weight, 3, sign=True)) for name, weight in weights.items()]


def build_risk(signals: SignalSummary | None) -> Risk | None:
    """Return the decision of the risk gate, if it was asked."""
    if signals is None:
        return None
    refused = [signal for signal in signals.decisions if not signal.approved]
    more = len(refused) - MAX_REFUSED_SIGNALS_SHOWN
    return Risk(
        facts=[
            ("signals approved", count(signals.approved)),
            ("signals refused", count(signals.refused)),
            ("day of the signals", _describe_day(signals)),
            ("share of the book that the policy has room for", percent(signals.scale, 0)),
        ],
        bounds=signals.bounds if refused else "",
        withheld=signals.withheld_for,
        notes=signals.policy_notes,
        evidence=[_make_evidence_row(check) for check in signals.evidence],
        standings=[(short_id(name), _describe_standing(line)) for name, line in sorted(signals.standings.items())],
        refused=[_make_refused_row(signal) for signal in refused[:MAX_REFUSED_SIGNALS_SHOWN]],
        more=f"and {more:,} more" if more > 0 else "",
        book=[_make_check_row(check) for check in signals.book if check.limit is not None],
        gated=[]
        if not signals.decisions
        else [
            _make_gated_row("ungated: all that was asked", signals.decisions),
            _make_gated_row("gated: what was approved", [line for line in signals.decisions if line.approved]),
        ],
        days=[_make_day_row(day) for day in signals.days],
    )


def _make_gated_row(label: str, lines: Sequence[SignalLine]) -> tuple[str, str, str, str, str]:
    """Return symbols, gross, net and largest target, as shares of equity."""
    targets = [(line.target_bp or 0) / BASIS_POINTS for line in lines]
    gross, largest = math.fsum(map(abs, targets)), max(map(abs, targets), default=0.0)
    held = count(sum(target != 0 for target in targets))
    net = round(math.fsum(targets), SHARE_DIGITS) + 0.0  # without the sign of a rounded zero
    return label, held, percent(gross), percent(net), percent(largest)


def _make_day_row(day: GateDay) -> tuple[str, str, str, str, str, str, str]:
    named = "; ".join(f"{one.asset}: {', '.join(one.rules)}".replace("_", " ") for one in day.refused)
    more = day.asked - day.approved - len(day.refused)
    refused = f"{named}; and {count(more)} more" if more > 0 else named
    return (
        day.day,
        count(day.asked),
        count(day.approved),
        refused,
        count(day.held),
        count(day.kept),
        percent(day.gross, 0),
    )


def _describe_day(signals: SignalSummary) -> str:
    """Describe the day of the signals; holidays ahead are unknown."""
    day = any_value(signals.day)
    return f"{day}, or later if that is a holiday" if signals.after else day


def _make_refused_row(signal: SignalLine) -> tuple[str, str, str]:
    exposure = f"{_show(signal.target_bp)} ({_show(signal.lo_bp)} to {_show(signal.hi_bp)})"
    return signal.asset, exposure, any_value(signal.refusals).replace("_", " ")


def _make_evidence_row(check: RuleCheckLine) -> tuple[str, str, str, str]:
    """Return what a rule of evidence asks, actual, limit, and whether it holds or for which id it fails."""
    asks, unit = EVIDENCE_RULES[check.rule]
    mark = "holds" if check.passed else f"broken by {short_id(check.about)}"
    actual = DASH if check.actual is None else f"{check.actual / 100:.0f} %" if unit else count(check.actual)
    limit = f"{(check.limit or 0) / 100:.0f} %" if unit else count(check.limit)
    return asks, actual, limit, mark


def _describe_standing(line: StandingLine) -> str:
    """Return what the record says of one factor or combination."""
    said = [line.verdict.replace("_", " "), *([f"trial {line.trial}"] if line.trial else []), line.status or "not held"]
    if line.similarity_bp is not None:
        said.append(f"{line.similarity_bp / 100:.0f} % of its formula is known ({line.nearest})")
    if line.correlation_bp is not None:
        said.append(f"rank correlation with the library {line.correlation_bp / 10_000:.2f} when it was judged")
    said += [_describe_exposure(one) for one in line.exposures]
    return "; ".join([*said, *([f"review: {line.review}"] if line.review else [])])


def _describe_exposure(line: ExposureLine) -> str:
    """Return what an audit found, and the smallest gap that it would have seen."""
    from ...risk import PER_ONE, PER_SD

    if not line.statistic:
        return f"{line.attribute}: could not be audited"
    figures = f"p {line.p_e9 / PER_ONE:.2g}, threshold {line.level_e9 / PER_ONE:.2g}"
    seen = f"a gap of {line.smallest_gap_e4 / PER_SD:.2f} deviations would have been seen"
    found = f"carried ({line.statistic})" if line.found else "not seen"
    return f"{line.attribute}: {found}, {figures}; {seen}"


def _make_check_row(check: RuleCheckLine) -> tuple[str, str, str, str, str]:
    """Return a rule, its actual value, its limit, the share of the limit that is left, and whether it holds."""
    mark = "holds" if check.passed else "broken"
    if check.rule == KILL_SWITCH:
        return "kill switch", "on" if check.actual else "off", "off", DASH, mark
    room = 1 - (check.actual or 0) / check.limit if check.limit else None
    return check.rule.replace("_", " "), _show(check.actual), _show(check.limit), percent(room, 0), mark


def _show(value: float | None) -> str:
    """Return a figure of the gate; exposures in basis points have a decimal where they need one."""
    if value is None:
        return DASH
    return count(round(value)) if round(value, 1) == round(value) else number(value, 1)


def spend_rows(bill: ModelBill) -> Facts:
    """Return the models' spending."""
    return [
        ("calls", count(bill.calls)),
        ("tokens in", count(bill.tokens_in)),
        ("tokens out", count(bill.tokens_out)),
        ("dollars", money(bill.usd)),
    ]


def spend_rows_by_role(spend: SpendSummary) -> list[list[str]]:
    """Return a line per role of the agents."""
    return [[role, *(text for _, text in spend_rows(bill))] for role, bill in sorted(spend.by_role.items())]
