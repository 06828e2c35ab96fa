"""What the report says, in order: results and curves in, words, numbers and drawings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ..cli.code import summarise_formula
from ..cli.evidence import combine
from ..figures import DASH, any_value, count, money, number, p_value_text, percent, plural, short_id
from ..rules import costs, rule_rows
from . import alternatives, closing, empty_result
from .cards import Card, GateStep, card, find_deciding_step
from .operators import operator_lines
from .plots import Span, Stage, funnel, timeline
from .request import describe_request, describe_variety
from .stress_matrix import StressPage, stress_page

__all__ = ["ReportPage", "collect_notes", "page", "strength", "verdict_sentence"]

MAX_REJECTED_IN_REPORT = 40
WINDOW_ORDER = ("search", "selection", "sealed")
OFFLINE_SENTENCE = "Researcher: offline: a heuristic, not a language model."
RETURNS = {"residual": "with market, sector and size taken out", "raw": "as they are"}
Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class RejectedLine:
    """A line of the table of what was refused."""

    id: str
    text: str
    numbers: Sequence[str]
    step: str
    reason: str


@dataclass(frozen=True)
class ReportPage:
    """Everything that the template prints."""

    title: str
    verdict: str
    summary: Facts
    data: Facts
    rules: Facts
    costs: str
    notes: Sequence[str]
    timeline: str | None
    funnel: str
    refused: Facts
    reused: str
    changed: Sequence[Sequence[str]]
    power: str
    power_facts: Facts
    others: alternatives.RulesTable | None
    checks: Sequence[alternatives.SearchTest]
    accepted: Sequence[Card]
    unproven: str
    watched: Sequence[Card]
    rejected: Sequence[RejectedLine]
    rejected_more: str
    sealed: Facts
    sealed_sentence: str
    sealed_each: Sequence[Sequence[str]]
    openings: Sequence[str]
    stress: StressPage | None
    book: closing.BookFigures | None
    combined: combine.Comparison | None
    risk: closing.Risk | None
    spend: Facts
    spend_by_role: Sequence[Sequence[str]]
    warnings: Sequence[str]
    researcher: str
    asked: str
    varied: str
    colophon: str


def page(results: Mapping[str, Any], curves: Mapping[str, Any]) -> ReportPage:
    """Return the whole page; what a run did not reach is a dash or left out."""
    data, spend = results.get("data") or {}, results.get("spend") or {}
    return ReportPage(
        title=str(data.get("name") or "a panel"),
        verdict=verdict_sentence(results),
        summary=_summary(results),
        data=_data(results),
        rules=rule_rows(results),
        costs=_costs(results),
        notes=list(dict.fromkeys([*map(str, data.get("notes") or ()), *collect_notes(results, data_only=True)])),
        timeline=_timeline(results.get("windows") or {}),
        funnel=_funnel(results),
        refused=_refused_facts(results),
        reused=empty_result.describe_reused(results),
        changed=operator_lines(results),
        power=str((results.get("power") or {}).get("sentence") or ""),
        power_facts=_power(results.get("power") or {}),
        others=alternatives.build_rules_table(results),
        checks=alternatives.checks(results),
        accepted=_cards(results, "accepted", curves),
        unproven=empty_result.describe_empty_result(results),
        watched=_cards(results, "watchlist", curves),
        rejected=_rejected_lines(results.get("rejected") or ()),
        rejected_more=_rejected_more(results.get("rejected") or ()),
        sealed=closing.exam(results.get("sealed")),
        sealed_sentence=closing.exam_sentence(results.get("sealed")),
        sealed_each=closing.exam_of_each(results.get("sealed")),
        openings=closing.openings(results),
        stress=stress_page(results),
        book=closing.book(results, curves),
        combined=combine.comparison(results),
        risk=closing.risk(results.get("signals")),
        spend=closing.spend_facts(spend),
        spend_by_role=closing.spend_by_role(spend),
        warnings=collect_notes(results, data_only=False),
        asked=describe_request(results),
        varied=describe_variety(results),
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
        ("Label", f"return from the next open to the open {any_value(horizon)} days later"),
        ("Returns", RETURNS.get(str(windows.get("returns")), DASH)),
        ("Embargo between windows", f"{any_value(embargo)} days"),
        ("Labels missing for want of an open", count(windows.get("search_cells_without_an_open"))),
        ("Seed", any_value(results.get("seed"))),
        ("Panel", str(data.get("digest") or DASH)[:16]),
    ]


def _timeline(windows: Mapping[str, Any]) -> str | None:
    spans: list[Span] = []
    for kind in WINDOW_ORDER:
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
        Stage("trials on selection", trials, f"each is counted for good; {_describe_prior_trials(results)}"),
        Stage("accepted", accepted, f"and {count(len(results.get('watchlist') or ()))} to watch"),
    ]
    return funnel("Attempts, evaluations, trials and acceptances, on a logarithmic scale", stages)


def _describe_prior_trials(results: Mapping[str, Any]) -> str:
    prior = int(results.get("prior_trials") or 0)
    return f"{prior:,} more before this run" if prior else "none before this run"


def _refused_facts(results: Mapping[str, Any]) -> Facts:
    stages = (results.get("attempts") or {}).get("refused") or {}
    return [(stage, count(n)) for stage, n in sorted(stages.items(), key=lambda item: (-int(item[1]), item[0])) if n]


def _power(power: Mapping[str, Any]) -> Facts:
    if not power:
        return []
    likely = power.get("rank_ic_likely")
    return [
        ("smallest measured RankIC proven", number(power.get("rank_ic_provable"), 4)),
        *([("true RankIC accepted 4 times in 5", number(likely, 4))] if likely is not None else []),
        ("t required", number(power.get("t_required"), 2)),
        ("p required", p_value_text(power.get("p_required"))),
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


def _rejected_lines(entries: Sequence[Mapping[str, Any]]) -> list[RejectedLine]:
    return [_rejected_row(entry) for entry in sorted(entries, key=strength)[:MAX_REJECTED_IN_REPORT]]


def strength(entry: Mapping[str, Any]) -> tuple[bool, float, str]:
    """Trials first, then the strongest on search: where a reader wants to know why not."""
    t = ((entry.get("metrics") or {}).get("search") or {}).get("t")
    return entry.get("trial") is None, -abs(float(t or 0.0)), str(entry.get("id"))


def _rejected_row(entry: Mapping[str, Any]) -> RejectedLine:
    metrics = entry.get("metrics") or {}
    search, selection = metrics.get("search") or {}, metrics.get("selection") or {}
    reason: GateStep | None = find_deciding_step(entry)
    return RejectedLine(
        id=short_id(entry.get("id")) + (f", set of {len(entry['members'])}" if entry.get("members") else ""),
        text=summarise_formula(str(entry.get("text") or "")),
        numbers=[
            number(search.get("rank_ic"), 4, sign=True),
            number(search.get("t"), 2, sign=True),
            percent(search.get("turnover")),
            number(search.get("net_sharpe"), 2, sign=True),
            number(selection.get("rank_ic"), 4, sign=True),
            p_value_text(selection.get("p_value")),
        ],
        step=reason.step if reason else DASH,
        reason=reason.message if reason else "",
    )


def _rejected_more(entries: Sequence[Mapping[str, Any]]) -> str:
    more = len(entries) - MAX_REJECTED_IN_REPORT
    return f"and {more:,} more, in results.json" if more > 0 else ""


def collect_notes(results: Mapping[str, Any], *, data_only: bool) -> list[str]:
    """Return the notes on the data, or the warnings that a person must see first."""
    ended = results.get("ended")
    early = [f"The search ended early: {ended}"] if ended and not data_only else []
    coded = [item if isinstance(item, Mapping) else {"message": item} for item in results.get("warnings") or ()]
    chosen = [item for item in coded if (item.get("code") == "data") is data_only]
    return early + [str(item.get("message") or item.get("code")) for item in chosen]


def _researcher(researcher: object) -> str:
    text = str(researcher or "").strip().rstrip(".")
    if "not a language model" in text:
        return f"Researcher: {text}."
    return OFFLINE_SENTENCE if text.startswith("offline") else f"Researcher: {text or 'not named'}."


def _costs(results: Mapping[str, Any]) -> str:
    return costs(((results.get("settings") or {}).get("evidence") or {}).get("costs"))


def _colophon(results: Mapping[str, Any]) -> str:
    return (
        "Trials are counted over this workspace and every earlier look that was declared; looks made elsewhere "
        "cannot be known. RankIC is the mean daily rank correlation with returns from the next open; "
        f"t-statistics use Newey-West errors. After costs means after {_costs(results)}."
    )
