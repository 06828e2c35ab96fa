"""The last parts of the report: the book, the sealed exam, the risk gate and the spend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ..figures import any_value, count, money, number, p_value_text, percent, short_id
from .plots import Curve, LineChart, line_chart
from .svg import Frame

__all__ = [
    "BookFigures",
    "Risk",
    "book",
    "exam",
    "exam_of_each",
    "exam_sentence",
    "openings",
    "risk",
    "spend_by_role",
    "spend_facts",
]

MAX_REFUSED_SIGNALS_SHOWN = 30
FLATTERED_NOTE = (
    "These are the selection days, the ones on which the book's factors were accepted, so its figures flatter: luck on "
    "these days helped to choose them."
)
UNCHECKED_NOTE = " No sealed day was opened to check."
CHECKED_NOTE = " The sealed days were opened later; what they said stands beside it."
PERCENT_KEYS = ("annual_return", "max_drawdown", "turnover_per_day", "costs_paid", "borrow_paid")
BOOK_WORDS = {
    "window": "on the window",
    "accepted_on_these_days": "its factors were accepted on these days",
    "days": "days",
    "sharpe": "Sharpe after costs",
    "annual_return": "return a year",
    "max_drawdown": "largest drawdown",
    "turnover_per_day": "turnover a day",
    "costs_paid": "paid for trading",
    "borrow_paid": "paid for borrowing",
    "plain_sharpe": "Sharpe after costs, reckoned without vectorbt",
}
Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class BookFigures:
    """What trading the combination would have given."""

    facts: Facts
    caution: str
    unavailable: str
    equity: str | None
    drawdown: str | None
    weights: Facts


@dataclass(frozen=True)
class Risk:
    """What the risk gate decided; amounts of exposure are basis points of equity."""

    facts: Facts
    bounds: str
    withheld: Sequence[str]
    refused: Sequence[tuple[str, str, str]]
    more: str
    book: Sequence[tuple[str, str, str, str]]


def exam(sealed: Mapping[str, Any] | None) -> Facts:
    """Return what the sealed days said; nothing if they stayed sealed."""
    if not sealed or not sealed.get("opened"):
        return []
    return [
        ("RankIC", number(sealed.get("rank_ic"), 4, sign=True)),
        ("t", number(sealed.get("t"), 2, sign=True)),
        *([(_p_value_label(sealed), p_value_text(sealed["p_value"]))] if "p_value" in sealed else []),
        ("days", count(sealed.get("days"))),
        ("opening", f"no. {count(sealed.get('number'))}"),
    ]


def _p_value_label(sealed: Mapping[str, Any]) -> str:
    """Name the p-value; t beside it is of the labels, so another test is named."""
    of = ", of what is held" if sealed.get("test") == "held" else ""
    return f"p, one-sided{of}, of a mean constant in the window"


def exam_of_each(sealed: Mapping[str, Any] | None) -> list[Sequence[str]]:
    """Return a line for each accepted factor, in the direction in which it is held: id, RankIC, t, p."""
    return [
        (
            short_id(name),
            f"RankIC {number(_directed_ic(each), 4, sign=True)}",
            f"t {number((each.get('t') or 0.0) * each['sign'], 2, sign=True)}",
            f"p {p_value_text(each.get('p_value'))}",
        )
        for name, each in sorted(((sealed or {}).get("factors") or {}).items())
    ]


def _directed_ic(line: Mapping[str, Any]) -> float | None:
    """Return a factor's RankIC in the direction in which it is held."""
    return None if line.get("rank_ic") is None else line["rank_ic"] * line["sign"]


def openings(results: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each opening of shared sealed days that came before this run's close or its own opening."""
    sealed, windows = results.get("sealed") or {}, results.get("windows") or {}
    found = sealed.get("earlier") or windows.get("openings") or ()
    return [
        f"Opening no. {count(each.get('number'))} of these days, {each.get('first')} to {each.get('last')}, was another "
        f"run's. Its reason: {each.get('reason')}."
        for each in found
    ]


def exam_sentence(sealed: Mapping[str, Any] | None) -> str:
    """Return in words whether this was an exam."""
    if not sealed or not sealed.get("opened"):
        return "This run did not open the sealed window."
    first = "The combination met the sealed days, at their first opening in this workspace. A further one is numbered."
    again = "These days had been opened before: this is no longer an exam on unseen data."
    why = f" Reason given: {sealed['reason']}." if sealed.get("reason") else ""
    return (first if sealed.get("number") == 1 else again) + why


def book(results: Mapping[str, Any], curves: Mapping[str, Any]) -> BookFigures | None:
    """Return the book, if anything was accepted that could be traded."""
    figures, curve = results.get("book"), curves.get("book") or {}
    if not figures:
        return None
    weights = _weights(results.get("combination"))
    if figures.get("unavailable"):
        return BookFigures(
            [], "", f"{figures['unavailable']}. {figures.get('hint') or ''}".strip(), None, None, weights
        )
    days = [date.fromisoformat(day) for day in curve.get("dates") or ()]
    return BookFigures(
        _book_facts(figures),
        book_caution(figures, results.get("sealed")),
        "",
        _equity(days, curve),
        _drawdown(days, curve),
        weights,
    )


def book_caution(figures: Mapping[str, Any], sealed: Mapping[str, Any] | None) -> str:
    """Return in words which days the book was traded on, and what that makes of its figures."""
    window = figures.get("window")
    if window == "selection":
        return FLATTERED_NOTE + (CHECKED_NOTE if (sealed or {}).get("opened") else UNCHECKED_NOTE)
    if window != "sealed":
        return "It is not recorded on which days this book was traded."
    number = (sealed or {}).get("number")
    if number is not None and number != 1:
        return f"These are the sealed days, at opening no. {count(number)}: they had been seen before, so they may flatter."
    return "These are the sealed days: none of the book's factors was accepted on them."


def _book_facts(book: Mapping[str, Any]) -> Facts:
    known = [
        (word, percent(book[key]) if key in PERCENT_KEYS else any_value(book[key]))
        for key, word in BOOK_WORDS.items()
        if key in book
    ]
    return known + [(key.replace("_", " "), any_value(value)) for key, value in book.items() if key not in BOOK_WORDS]


def _equity(days: Sequence[date], curve: Mapping[str, Any]) -> str:
    line = Curve("book", days, curve.get("equity") or [])
    start = float(line.values[0]) if line.values else 1.0
    return line_chart(LineChart("Equity after costs", [line], any_value, frame=Frame(960, 200), base=start))


def _drawdown(days: Sequence[date], curve: Mapping[str, Any]) -> str:
    falls = [-abs(float(value)) for value in curve.get("drawdown") or ()]
    line = Curve("drawdown", days, falls, filled=True)
    chart = LineChart("Drawdown", [line], lambda value: percent(value, 0), frame=Frame(960, 110))
    return line_chart(chart)


def _weights(combination: Mapping[str, Any] | None) -> Facts:
    if not combination:
        return []
    factors, weights = combination.get("factors") or (), combination.get("weights") or ()
    pairs = weights.items() if isinstance(weights, Mapping) else zip(factors, weights, strict=False)
    return [(short_id(factor), number(weight, 3, sign=True)) for factor, weight in pairs]


def risk(signals: Mapping[str, Any] | None) -> Risk | None:
    """Return what the risk gate decided, if anything was put before it."""
    if not signals:
        return None
    refused = [ruling for ruling in signals.get("decisions") or () if not ruling.get("approved")]
    return Risk(
        facts=[
            ("signals approved", count(signals.get("approved"))),
            ("signals refused", count(signals.get("refused"))),
            ("for", _describe_day(signals)),
        ],
        bounds=str(signals.get("bounds") or ""),
        withheld=[str(name) for name in signals.get("withheld_for") or ()],
        refused=[_refused_row(ruling) for ruling in refused[:MAX_REFUSED_SIGNALS_SHOWN]],
        more=f"and {len(refused) - MAX_REFUSED_SIGNALS_SHOWN:,} more"
        if len(refused) > MAX_REFUSED_SIGNALS_SHOWN
        else "",
        book=[_check(check) for check in signals.get("book") or ()],
    )


def _describe_day(signals: Mapping[str, Any]) -> str:
    """Say which day signals are for; prices do not tell which days ahead are holidays."""
    day = any_value(signals.get("day"))
    last = signals.get("after")
    return f"the next trading day after {last}: {day}, unless that is a holiday" if last else day


def _refused_row(ruling: Mapping[str, Any]) -> tuple[str, str, str]:
    asked = (
        f"{any_value(ruling.get('target_bp'))} ({any_value(ruling.get('lo_bp'))} to {any_value(ruling.get('hi_bp'))})"
    )
    return str(ruling.get("asset")), asked, any_value(ruling.get("refusals")).replace("_", " ")


def _check(check: Mapping[str, Any]) -> tuple[str, str, str, str]:
    mark = "holds" if check.get("passed") else "broken"
    return str(check.get("rule")).replace("_", " "), any_value(check.get("actual")), any_value(check.get("limit")), mark


def spend_facts(bill: Mapping[str, Any]) -> Facts:
    """Return what the models took."""
    return [
        ("calls", count(bill.get("calls"))),
        ("tokens in", count(bill.get("tokens_in"))),
        ("tokens out", count(bill.get("tokens_out"))),
        ("dollars", money(bill.get("usd"))),
    ]


def spend_by_role(spend: Mapping[str, Any]) -> list[list[str]]:
    """Return a line per role of the agents."""
    roles = spend.get("by_role") or {}
    return [
        [
            role,
            count(row.get("calls")),
            count(row.get("tokens_in")),
            count(row.get("tokens_out")),
            money(row.get("usd")),
        ]
        for role, row in sorted(roles.items())
        if isinstance(row, Mapping)
    ]
