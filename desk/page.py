"""What the report says, in order: results and curves in, words, numbers and drawings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from .cards import Card, Reason, card, deciding
from .figures import DASH, count, generic, ids, money, number, percent, plural
from .plots import Line, LineChart, Span, Stage, funnel, line_chart, timeline
from .svg import Frame

__all__ = ["Page", "page", "strength", "verdict_sentence"]

SHOWN_REJECTED = 40
SHOWN_DECISIONS = 30
WINDOWS = ("search", "selection", "sealed")
RESEARCHERS = {
    "offline": "The researcher was the offline researcher: a heuristic, not a language model.",
}
Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Rejected:
    """A line of the table of what was refused."""

    id: str
    text: str
    numbers: Sequence[str]
    step: str
    reason: str


@dataclass(frozen=True)
class Book:
    """What trading the combination would have given."""

    facts: Facts
    equity: str
    drawdown: str
    weights: Facts


@dataclass(frozen=True)
class Page:
    """Everything that the template prints."""

    title: str
    verdict: str
    summary: Facts
    data: Facts
    notes: Sequence[str]
    timeline: str | None
    funnel: str
    refused: Facts
    power: str
    power_facts: Facts
    accepted: Sequence[Card]
    watched: Sequence[Card]
    rejected: Sequence[Rejected]
    rejected_more: str
    sealed: Facts
    sealed_sentence: str
    book: Book | None
    signals: Facts
    refusals: Sequence[Facts]
    spend: Facts
    spend_by_role: Sequence[Sequence[str]]
    warnings: Sequence[str]
    researcher: str
    colophon: str


def page(results: Mapping[str, Any], curves: Mapping[str, Any]) -> Page:
    """Return the whole page; what a run did not reach is a dash or left out."""
    data, spend = results.get("data") or {}, results.get("spend") or {}
    signals = results.get("signals")
    return Page(
        title=str(data.get("name") or "a panel"),
        verdict=verdict_sentence(results),
        summary=_summary(results),
        data=_data(results),
        notes=[str(note) for note in data.get("notes") or ()],
        timeline=_timeline(results.get("windows") or {}),
        funnel=_funnel(results),
        refused=_refused(results),
        power=str((results.get("power") or {}).get("sentence") or ""),
        power_facts=_power(results.get("power") or {}),
        accepted=_cards(results, "accepted", curves),
        watched=_cards(results, "watchlist", curves),
        rejected=_rejected(results.get("rejected") or ()),
        rejected_more=_rejected_more(results.get("rejected") or ()),
        sealed=_sealed(results.get("sealed")),
        sealed_sentence=_sealed_sentence(results.get("sealed")),
        book=_book(results, curves),
        signals=_signals(signals),
        refusals=_refusals(signals),
        spend=_spend(spend),
        spend_by_role=_by_role(spend),
        warnings=[_warning(item) for item in results.get("warnings") or ()],
        researcher=_researcher(results.get("researcher")),
        colophon=_colophon(results),
    )


def verdict_sentence(results: Mapping[str, Any]) -> str:
    """Return the outcome in one sentence; nothing accepted is said first, not hidden."""
    entries = results.get("accepted") or ()
    sets = sum(1 for entry in entries if entry.get("members"))
    watched, rejected = len(results.get("watchlist") or ()), len(results.get("rejected") or ())
    parts = [plural(n, word) for n, word in ((len(entries) - sets, "factor"), (sets, "set")) if n] or ["nothing"]
    named = " and ".join(parts)
    rest = f"{watched or 'none'} on the watchlist, {rejected or 'none'} rejected."
    return f"{named[0].upper()}{named[1:]} {'were' if len(entries) > 1 else 'was'} accepted; {rest}"


def _summary(results: Mapping[str, Any]) -> Facts:
    spend = results.get("spend") or {}
    return [
        ("attempts", count((results.get("attempts") or {}).get("total"))),
        ("evaluations", count(results.get("evaluations"))),
        ("trials", count(results.get("trials"))),
        ("accepted", count(len(results.get("accepted") or ()))),
        ("watched", count(len(results.get("watchlist") or ()))),
        ("spent on models", money(spend.get("usd"))),
    ]


def _data(results: Mapping[str, Any]) -> Facts:
    data, windows = results.get("data") or {}, results.get("windows") or {}
    horizon, embargo = windows.get("horizon_days"), windows.get("embargo_days")
    return [
        ("Days", f"{count(data.get('days'))}, {data.get('first_day', DASH)} to {data.get('last_day', DASH)}"),
        ("Names", count(data.get("names"))),
        ("Label", f"return from the next open to the open {generic(horizon)} days later"),
        ("Embargo between windows", f"{generic(embargo)} days"),
        ("Seed", generic(results.get("seed"))),
        ("Panel", str(data.get("digest") or DASH)[:16]),
    ]


def _timeline(windows: Mapping[str, Any]) -> str | None:
    spans: list[Span] = []
    for kind in WINDOWS:
        window = windows.get(kind)
        if not window:
            continue
        first, last = date.fromisoformat(window["first"]), date.fromisoformat(window["last"])
        if spans and (first - spans[-1].last).days > 1:
            spans.append(Span("embargo", "", spans[-1].last, first))
        spans.append(Span(kind, kind.capitalize(), first, last, f"{count(window.get('days'))} days"))
    return timeline("The windows: search, selection and sealed, with an embargo between them", spans) if spans else None


def _funnel(results: Mapping[str, Any]) -> str:
    attempts = results.get("attempts") or {}
    early = sum(int(n) for n in (attempts.get("refused") or {}).values())
    evaluations, trials = int(results.get("evaluations") or 0), int(results.get("trials") or 0)
    accepted = len(results.get("accepted") or ())
    stages = [
        Stage("attempts", int(attempts.get("total") or 0), f"{count(early)} refused before they were scored"),
        Stage("evaluations on search", evaluations, "agents see these results"),
        Stage("trials on selection", trials, f"each is counted for good; {_earlier(results)}"),
        Stage("accepted", accepted, f"and {count(len(results.get('watchlist') or ()))} to watch"),
    ]
    return funnel("Attempts, evaluations, trials and acceptances, on a logarithmic scale", stages)


def _earlier(results: Mapping[str, Any]) -> str:
    prior = int(results.get("prior_trials") or 0)
    return f"{prior:,} more before this run" if prior else "none before this run"


def _refused(results: Mapping[str, Any]) -> Facts:
    stages = (results.get("attempts") or {}).get("refused") or {}
    return [(stage, count(n)) for stage, n in sorted(stages.items(), key=lambda item: (-int(item[1]), item[0])) if n]


def _power(power: Mapping[str, Any]) -> Facts:
    if not power:
        return []
    return [
        ("smallest provable RankIC", number(power.get("rank_ic_provable"), 4)),
        ("t required", number(power.get("t_required"), 2)),
        ("p required", number(power.get("p_required"), 5)),
        ("trials", count(power.get("trials"))),
        ("selection days", count(power.get("days"))),
        ("level", percent(power.get("level"), 0)),
    ]


def _cards(results: Mapping[str, Any], group: str, curves: Mapping[str, Any]) -> list[Card]:
    texts = {
        str(entry["id"]): str(entry.get("text") or "")
        for kind in ("accepted", "watchlist", "rejected")
        for entry in results.get(kind) or ()
    }
    boundary = ((results.get("windows") or {}).get("selection") or {}).get("first")
    return [card(entry, curves.get(entry["id"]) or {}, boundary, texts) for entry in results.get(group) or ()]


def _rejected(entries: Sequence[Mapping[str, Any]]) -> list[Rejected]:
    return [_rejected_row(entry) for entry in sorted(entries, key=strength)[:SHOWN_REJECTED]]


def strength(entry: Mapping[str, Any]) -> tuple[bool, float, str]:
    """Trials first, then the strongest on search: where a reader wants to know why not."""
    t = ((entry.get("metrics") or {}).get("search") or {}).get("t")
    return entry.get("trial") is None, -abs(float(t or 0.0)), str(entry.get("id"))


def _rejected_row(entry: Mapping[str, Any]) -> Rejected:
    metrics = entry.get("metrics") or {}
    search, selection = metrics.get("search") or {}, metrics.get("selection") or {}
    reason: Reason | None = deciding(entry)
    return Rejected(
        id=ids(entry.get("id")),
        text=str(entry.get("text") or ""),
        numbers=[
            number(search.get("rank_ic"), 4, sign=True),
            number(search.get("t"), 2, sign=True),
            percent(search.get("turnover")),
            number(search.get("net_sharpe"), 2, sign=True),
            number(selection.get("rank_ic"), 4, sign=True),
            number(selection.get("p_value"), 4),
        ],
        step=reason.step if reason else DASH,
        reason=reason.message if reason else "",
    )


def _rejected_more(entries: Sequence[Mapping[str, Any]]) -> str:
    more = len(entries) - SHOWN_REJECTED
    return f"and {more:,} more, in results.json" if more > 0 else ""


def _sealed(sealed: Mapping[str, Any] | None) -> Facts:
    if not sealed or not sealed.get("opened"):
        return []
    return [
        ("RankIC", number(sealed.get("rank_ic"), 4, sign=True)),
        ("t", number(sealed.get("t"), 2, sign=True)),
        ("days", count(sealed.get("days"))),
        ("opening", f"no. {count(sealed.get('number'))}"),
    ]


def _sealed_sentence(sealed: Mapping[str, Any] | None) -> str:
    if not sealed or not sealed.get("opened"):
        return "The sealed window was not opened: its days are still unseen."
    if sealed.get("number") == 1:
        return "The combination met the sealed days once. A second look would be a second opening, numbered and shown."
    return "These days had been opened before: this is no longer an exam on unseen data."


def _book(results: Mapping[str, Any], curves: Mapping[str, Any]) -> Book | None:
    book, curve = results.get("book"), curves.get("book") or {}
    if not book:
        return None
    days = [date.fromisoformat(day) for day in curve.get("dates") or ()]
    facts = [(key.replace("_", " "), generic(value)) for key, value in book.items() if not isinstance(value, dict)]
    return Book(facts, _equity(days, curve), _drawdown(days, curve), _weights(results.get("combination")))


def _equity(days: Sequence[date], curve: Mapping[str, Any]) -> str:
    line = Line("book", days, curve.get("equity") or [])
    start = float(line.values[0]) if line.values else 1.0
    return line_chart(LineChart("Equity after costs", [line], generic, frame=Frame(960, 200), base=start))


def _drawdown(days: Sequence[date], curve: Mapping[str, Any]) -> str:
    falls = [-abs(float(value)) for value in curve.get("drawdown") or ()]
    line = Line("drawdown", days, falls, filled=True)
    chart = LineChart("Drawdown", [line], lambda value: percent(value, 0), frame=Frame(960, 110))
    return line_chart(chart)


def _weights(combination: Mapping[str, Any] | None) -> Facts:
    if not combination:
        return []
    factors, weights = combination.get("factors") or (), combination.get("weights") or ()
    pairs = weights.items() if isinstance(weights, Mapping) else zip(factors, weights, strict=False)
    return [(ids(factor), number(weight, 3, sign=True)) for factor, weight in pairs]


def _signals(signals: Mapping[str, Any] | None) -> Facts:
    if not signals:
        return []
    return [("approved", count(signals.get("approved"))), ("refused", count(signals.get("refused")))]


def _refusals(signals: Mapping[str, Any] | None) -> list[Facts]:
    decisions = (signals or {}).get("decisions") or ()
    rows = [item for item in decisions if isinstance(item, Mapping)]
    return [[(key.replace("_", " "), generic(value)) for key, value in row.items()] for row in rows[:SHOWN_DECISIONS]]


def _spend(spend: Mapping[str, Any]) -> Facts:
    return [
        ("calls", count(spend.get("calls"))),
        ("tokens in", count(spend.get("tokens_in"))),
        ("tokens out", count(spend.get("tokens_out"))),
        ("dollars", money(spend.get("usd"))),
    ]


def _by_role(spend: Mapping[str, Any]) -> list[list[str]]:
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


def _warning(item: object) -> str:
    return str(item.get("message") or item.get("code")) if isinstance(item, Mapping) else str(item)


def _researcher(researcher: object) -> str:
    text = str(researcher or "")
    return RESEARCHERS["offline"] if text.startswith("offline") else f"The researcher was {text or 'not named'}."


def _colophon(results: Mapping[str, Any]) -> str:
    return (
        "Trials are counted over this workspace and every earlier look that was declared; looks made elsewhere "
        "cannot be known. RankIC is the mean daily rank correlation with returns from the next open; "
        "t-statistics use Newey-West errors."
    )
