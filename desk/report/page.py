"""The content of the report in its order, from results and curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from ..cli.evidence import combine
from ..cli.formula_source import summarise_formula
from ..figures import DASH, any_value, count, describe_costs, money, number, p_value_text, percent, plural, short_id
from . import alternatives, closing
from .baseline import BaselineSection, build_baseline, worth_sentence
from .cards import DRIFT_NOTE, Card, CardContext, build_card
from .conclusion import conclude, find_tested_combination, verdict_sentence
from .gate_steps import find_deciding_step
from .plots import Span, Stage, funnel, timeline
from .stress_matrix import StressPage, build_stress_page

if TYPE_CHECKING:
    from ...evaluation.closing import (
        AppliedSettings,
        AttemptCounts,
        Curves,
        FactorEntry,
        OperatorRow,
        OwnParts,
        Results,
        SealedFactor,
        SearchVariety,
        SelectionPower,
        WindowPlan,
    )


MAX_REJECTED_IN_REPORT, MAX_UNTESTED_IN_REPORT = 40, 20
OFFLINE_SENTENCE = "Researcher: offline: a heuristic, not a language model."
RETURNS = {"residual": "with market, sector and size taken out", "raw": "as they are"}
Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class FactorLine:
    """A line of the tables of rejected and untested factors."""

    id: str
    text: str
    numbers: Sequence[str]
    step: str
    reason: str


@dataclass(frozen=True)
class ReportPage:
    """The content of the template."""

    title: str
    verdict: str
    worth: str
    conclusion: Sequence[str]
    summary: Facts
    data: Facts
    rules: Facts
    costs: str
    notes: Sequence[str]
    timeline: str | None
    windows: Facts
    funnel: str
    refused: Facts
    reused: str
    changed: Sequence[Sequence[str]]
    power: str
    power_facts: Facts
    others: alternatives.RulesTable | None
    check_rows: Sequence[Sequence[str]]
    checks_note: str
    baseline: BaselineSection | None
    accepted: Sequence[Card]
    unproven: str
    proven: Sequence[Card]
    watched: Sequence[Card]
    rejected: Sequence[FactorLine]
    rejected_note: str
    rejected_more: str
    untested: Sequence[FactorLine]
    untested_more: str
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
    drift_note: str = DRIFT_NOTE
    exam_heads: Sequence[str] = closing.EXAM_COLUMNS


def build_page(results: Results, curves: Curves) -> ReportPage:
    """Return the whole page; parts that a run did not reach are a dash or left out."""
    data_notes = [*results.data.notes, *collect_notes(results, data_only=True)]
    return ReportPage(
        title=results.data.name or "a panel",
        verdict=verdict_sentence(results),
        worth=worth_sentence(results),
        conclusion=conclude(results),
        summary=_list_summary(results),
        data=_list_data(results),
        rules=_list_rules(results.settings),
        costs=_describe_run_costs(results),
        notes=list(dict.fromkeys(data_notes)),
        timeline=_draw_timeline(results.windows),
        windows=_list_windows(results.windows),
        funnel=_draw_funnel(results),
        refused=_list_refused(results.attempts),
        reused=describe_reused(results),
        changed=operator_lines(results.operators),
        power=results.power.sentence if results.power else "",
        power_facts=_list_power(results.power),
        others=alternatives.build_rules_table(results.stream_rules),
        checks_note=alternatives.SEARCH_TESTS_NOTE if results.superior else "",
        check_rows=[(test.name, test.value, test.means) for test in alternatives.list_search_tests(results)],
        baseline=build_baseline(results),
        accepted=_build_cards(results, sort_by_trial(results.accepted), curves),
        unproven=describe_empty_result(results),
        proven=_build_cards(results, sort_by_trial(results.proven), curves),
        watched=_build_cards(results, sort_by_trial(results.watchlist), curves),
        rejected=[_make_line(entry) for entry in sort_by_strength(results.rejected)[:MAX_REJECTED_IN_REPORT]],
        rejected_note=_describe_rejected(results.rejected),
        rejected_more=_describe_more(results.rejected, MAX_REJECTED_IN_REPORT),
        untested=[_make_line(entry) for entry in sort_by_strength(results.untested)[:MAX_UNTESTED_IN_REPORT]],
        untested_more=_describe_more(results.untested, MAX_UNTESTED_IN_REPORT),
        sealed=closing.exam_rows(results.sealed),
        sealed_sentence=closing.describe_exam(results.sealed, closing.find_refusal(results)),
        sealed_each=closing.exam_factor_rows(results.sealed, [entry.id for entry in results.accepted if entry.members]),
        openings=closing.describe_openings(results),
        stress=build_stress_page(results.stress),
        book=closing.build_book(results, curves.book),
        combined=combine.compare_combiners(results),
        risk=closing.build_risk(results.signals),
        spend=[] if _is_free(results) else closing.spend_rows(results.spend),
        spend_by_role=[] if _is_free(results) else closing.spend_rows_by_role(results.spend),
        warnings=collect_notes(results, data_only=False),
        asked=describe_request(results),
        varied=describe_variety(results.diversity),
        researcher=_name_researcher(results.researcher),
        colophon=_write_colophon(results),
    )


def _list_summary(results: Results) -> Facts:
    return [
        ("attempts", count(results.attempts.total)),
        ("evaluations", count(results.evaluations)),
        ("trials", count(results.trials)),
        ("accepted", count(len(results.accepted))),
        ("watched", count(len(results.watchlist))),
        ("spent on models", money(results.spend.usd)),
    ]


def _list_data(results: Results) -> Facts:
    data, windows = results.data, results.windows
    return [
        ("Days", f"{count(data.days)}, {data.first_day or DASH} to {data.last_day or DASH}"),
        ("Names", count(data.names)),
        ("Label", f"return from the next open to the open {any_value(windows.horizon_days)} days later"),
        ("Returns", RETURNS.get(windows.returns or "", DASH)),
        ("Embargo between windows", f"{any_value(windows.embargo_days)} days"),
        ("Labels missing for want of an open", count(windows.search_cells_without_an_open)),
        ("Seed", any_value(results.seed)),
        ("Panel", (data.digest or DASH)[:16]),
    ]


def _list_rules(settings: AppliedSettings | None) -> Sequence[tuple[str, str]]:
    """Return the costs, thresholds and budget of a run; empty for an older run that did not record them."""
    if settings is None:
        return []
    rules, budget = settings.evidence, settings.budget
    rows = [
        ("Costs", describe_costs(rules.costs)),
        ("Expected share of false acceptances, at most", percent(rules.level, 0)),
        ("Watchlist p-value threshold", p_value_text(rules.watch_p)),
        ("Largest shared subtree with a known factor", percent(rules.max_similarity, 0)),
        ("Largest rank correlation with the library", number(rules.max_redundancy, 2)),
        ("Suspiciously high RankIC (alert)", number(rules.leak_rank_ic, 3)),
        ("Declared earlier trials", count(rules.prior_trials)),
    ]
    if bounds := rules.complexity:
        rows.append(("Largest formula", f"{count(bounds.max_size)} nodes, {count(bounds.max_depth)} deep"))
    rows += [("Evaluations allowed", count(budget.evaluations)), ("Trials allowed", count(budget.trials))]
    return [row for row in rows if row[1] != DASH]


def _list_windows(windows: WindowPlan) -> Facts:
    """Return style and text of each window: who reads it, and its days."""
    uses = (
        ("search", "agents see its results", windows.search),
        ("selection", "only the gate looks", windows.selection),
        ("sealed", "one opening", windows.sealed),
    )
    return [
        (kind, f"{kind}: {use}" + (f"; {count(days.days)} days, {days.first} to {days.last}" if days else ""))
        for kind, use, days in uses
    ]


def _draw_timeline(windows: WindowPlan) -> str | None:
    spans: list[Span] = []
    for kind, window in (("search", windows.search), ("selection", windows.selection), ("sealed", windows.sealed)):
        if window is None:
            continue
        first, last = date.fromisoformat(window.first), date.fromisoformat(window.last)
        if spans and (first - spans[-1].last).days > 1:
            spans.append(Span("embargo", "", spans[-1].last, first))
        spans.append(Span(kind, kind.capitalize(), first, last, f"{count(window.days)} days"))
    return timeline("The windows: search, selection and sealed, with an embargo between them", spans) if spans else None


def _draw_funnel(results: Results) -> str:
    attempts, prior = results.attempts, results.prior_trials
    before = f"{prior:,} more before this run" if prior else "none before this run"
    stages = [
        Stage("attempts", attempts.total, f"{count(sum(attempts.refused.values()))} refused before they were scored"),
        Stage("evaluations on search", results.evaluations, _describe_reasons(results)),
        Stage("trials on selection", results.trials, f"each is counted for good; {before}"),
        Stage("accepted", len(results.accepted), f"and {count(len(results.watchlist))} to watch"),
    ]
    return funnel("Attempts, evaluations, trials and acceptances, on a logarithmic scale", stages)


def _describe_reasons(results: Results) -> str:
    """Return how many scored factors had a mechanism; runs of earlier versions did not count them."""
    if results.reasons is None:
        return "agents see these results"
    reasons = results.reasons
    stated = f" ({count(reasons.stated)} stated after scoring)" if reasons.stated else ""
    return f"{count(reasons.with_mechanism)} had a mechanism{stated}, {count(reasons.data_mined)} data-mined"


def _list_refused(attempts: AttemptCounts) -> Facts:
    return [
        (stage, count(n)) for stage, n in sorted(attempts.refused.items(), key=lambda item: (-item[1], item[0])) if n
    ]


def _list_power(power: SelectionPower | None) -> Facts:
    if power is None:
        return []
    likely = power.rank_ic_likely
    return [
        ("smallest measured RankIC proven", number(power.rank_ic_provable, 4)),
        *([("true RankIC accepted 4 times in 5", number(likely, 4))] if likely is not None else []),
        ("t required of the next trial", number(power.t_required, 2)),
        ("p required of the next trial", p_value_text(power.p_required)),
        ("trials so far", count(power.trials)),
        ("selection days with a label", count(power.days)),
        ("level", percent(power.level, 0)),
    ]


def _build_cards(results: Results, entries: Sequence[FactorEntry], curves: Curves) -> list[Card]:
    weights = results.combination.weights if results.combination and results.combination.tested else {}
    texts = {
        entry.id: f"{number(weights[entry.id], 2, sign=True)} rank({entry.text})" if entry.id in weights else entry.text
        for entry in results.entries
    }
    boundary = results.windows.selection.first if results.windows.selection else None
    truth, stated = {line.id: line for line in results.truth or ()}, _list_hypotheses(results)
    return [
        build_card(
            entry,
            curves.factors.get(entry.id),
            CardContext(boundary, texts, stated, _find_sealed(results, entry), truth.get(entry.id)),
        )
        for entry in entries
    ]


def _list_hypotheses(results: Results) -> dict[str, str]:
    """Return the stated hypothesis of each factor by id; empty for one that was found without."""
    return {
        entry.id: entry.hypothesis.statement if entry.hypothesis and not entry.hypothesis.either_way else ""
        for entry in results.entries
    }


def _find_sealed(results: Results, entry: FactorEntry) -> SealedFactor | None:
    """Return an entry's figures on the sealed days; those of the exam itself for the combination that was examined."""
    from ...evaluation.closing import SealedFactor

    exam = results.sealed
    if exam is None or not exam.opened:
        return None
    if find_tested_combination(results) is not entry:
        return exam.factors.get(entry.id)
    return SealedFactor(
        sign=1, days=exam.days, rank_ic=exam.rank_ic, t=exam.t, net_sharpe=exam.net_sharpe, p_value=exam.p_value
    )


def sort_by_trial(entries: Iterable[FactorEntry]) -> list[FactorEntry]:
    """Return entries in the order of their tests: the combination first."""
    return sorted(entries, key=lambda entry: (entry.trial is None, entry.trial or 0, entry.id))


def sort_by_strength(entries: Iterable[FactorEntry]) -> list[FactorEntry]:
    """Return entries with a trial first, then by |t| on search."""
    return sorted(entries, key=lambda entry: (entry.trial is None, -abs(entry.metrics.search.t or 0.0), entry.id))


def _make_line(entry: FactorEntry) -> FactorLine:
    search, selection = entry.metrics.search, entry.metrics.selection
    step = find_deciding_step(entry)
    return FactorLine(
        id=short_id(entry.id) + (f", combination of {len(entry.members)}" if entry.members else ""),
        text=summarise_formula(entry.text),
        numbers=[
            number(selection.rank_ic if selection else None, 4, sign=True),
            p_value_text(selection.p_value if selection else None),
            number(search.rank_ic, 4, sign=True),
            number(search.t, 2, sign=True),
            percent(search.turnover),
            number(search.net_sharpe, 2, sign=True),
        ],
        step=step.step if step else DASH,
        reason=step.message if step else "",
    )


def _describe_rejected(entries: Sequence[FactorEntry]) -> str:
    """Return how many had a trial; empty where all or none had."""
    tested = sum(entry.trial is not None for entry in entries)
    without = len(entries) - tested
    if not tested or not without:
        return ""
    were = "was" if without == 1 else "were"
    return f"{plural(tested, 'trial')} proved nothing; {count(without)} more {were} refused before any trial."


def _describe_more(entries: Sequence[FactorEntry], shown: int) -> str:
    more = len(entries) - shown
    return f"and {more:,} more, in results.json" if more > 0 else ""


def collect_notes(results: Results, *, data_only: bool) -> list[str]:
    """Return the notes on the data, or the warnings that a person must see first."""
    early = [f"The search ended early: {results.ended}"] if results.ended and not data_only else []
    return early + [note.text for note in results.warnings if (note.code == "data") is data_only]


def _name_researcher(researcher: str | None) -> str:
    text = (researcher or "").strip().rstrip(".")
    if "not a language model" in text:
        return f"Researcher: {text}."
    return OFFLINE_SENTENCE if text.startswith("offline") else f"Researcher: {text or 'not named'}."


def _is_free(results: Results) -> bool:
    """Tell whether no language model was used and nothing was paid, so that tokens mean nothing."""
    return not results.spend.usd and "not a language model" in _name_researcher(results.researcher)


def _describe_run_costs(results: Results) -> str:
    return describe_costs(results.settings.evidence.costs if results.settings else None)


def _write_colophon(results: Results) -> str:
    return (
        "Trials are counted over this workspace and every earlier look that was declared; looks made elsewhere "
        "cannot be known. RankIC is the mean daily rank correlation with returns from the next open; "
        "t-statistics use Newey-West errors."
    )


def describe_request(results: Results) -> str:
    """Return the person's settings and own parts, or an empty string."""
    steer = results.steer
    wishes = [("Asked for", steer.goal), ("To be avoided", ", ".join(steer.avoid))]
    wishes += [("First of all", ", ".join(steer.focus)), ("Only the fields", ", ".join(steer.fields))]
    wishes += [("Brought along", ", ".join(_list_own_parts(results.own)))]
    sentences = [f"{label}: {text}" for label, text in wishes if text]
    return "".join(f"{sentence.rstrip('.')}. " for sentence in sentences).strip()


def _list_own_parts(own: OwnParts) -> list[str]:
    pages = [name for name, page in own.prompts.items() if page.whose == "own"]
    return [
        *([plural(own.seed_library.factors, "formula")] if own.seed_library and own.seed_library.factors else []),
        *([plural(own.hypotheses, "hypothesis", "hypotheses")] if own.hypotheses else []),
        *([f"own pages for {', '.join(pages)}"] if pages else []),
        *([f"the agent {own.agent}"] if own.agent else []),
    ]


def describe_variety(variety: SearchVariety) -> str:
    """Return the number of different mechanisms of the search, or an empty string if it was not counted."""
    if not variety.hypotheses:
        return ""
    text = f"{plural(variety.hypotheses, 'hypothesis', 'hypotheses')} on {plural(variety.mechanisms, 'mechanism')}"
    text += f" (effective number: {variety.effective:.1f})"
    if variety.niches:
        text += f", filling {plural(variety.niches, 'cell')} of mechanism x horizon x turnover"
    if not variety.refused:
        return f"{text}."
    return f"{text}; {variety.refused} more got no branch, most because they repeated one."


BOUND_SENTENCE = "The section above says how strong a factor would have had to be."


def describe_empty_result(results: Results) -> str:
    """Explain a run that accepted nothing: only formulas with a trial were tested on the selection days."""
    trials, reused = results.trials, results.looks_reused
    if not trials and not reused:
        return (
            "No factor was accepted, because nothing met the selection days: no trial was spent. "
            "Whether any of what was tried could be told from chance there was not asked."
        )
    met = plural(trials, "trial") + (f" and {plural(reused, 'verdict')} from an earlier run's look" if reused else "")
    return (
        f"No factor was accepted. That is a result: of what met the selection days ({met}), nothing could be told from "
        f"chance after {plural(trials + results.prior_trials, 'look')} at them. "
        f"The rest of what was tried was never looked at there. {BOUND_SENTENCE}"
    )


def describe_reused(results: Results) -> str:
    """Return how many verdicts came from the test of an earlier run, or an empty string."""
    reused = results.looks_reused
    if not reused:
        return ""
    return f"{plural(reused, 'verdict was', 'verdicts were')} answered from an earlier run's look, without a new trial."


MIN_CHILDREN = 5
"""Least number of children, of parents with one weakness, for which a share is shown."""


def operator_lines(table: Sequence[OperatorRow]) -> Sequence[Sequence[str]]:
    """Return a line for each operator, the most tried first; empty if nothing was changed.

    Its columns: operator, children scored, of these better than the parent in |t|, their share, mean gain, best where.
    """
    from ...agents.memory import pool_rows

    rows = [row for row in table if row.tried]
    pooled = sorted(
        pool_rows([row.model_dump() for row in rows]), key=lambda total: (-total["tried"], total["operator"])
    )
    return [_list_operator_cells(total, _find_best(total["operator"], rows)) for total in pooled]


def _list_operator_cells(total: Mapping[str, Any], best: str) -> Sequence[str]:
    tried, better = int(total["tried"]), int(total["better"])
    gain = number(total["gained"] / tried, 2, sign=True)
    return (str(total["operator"]).replace("_", " "), count(tried), count(better), percent(better / tried), gain, best)


def _find_best(operator: str, rows: Sequence[OperatorRow]) -> str:
    """Return the parents' weakness with the highest share of better children, among those with enough children."""
    enough = [row for row in rows if row.operator == operator and row.tried >= MIN_CHILDREN and row.better]
    best = max(enough, key=lambda row: (row.better / row.tried, row.tried, row.where), default=None)
    return f"{best.where.replace('_', ' ')}: {best.better} of {best.tried}" if best else DASH
