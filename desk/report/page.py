"""The content of the report in its order, from results and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from ..cli.evidence import combine
from ..figures import DASH, any_value, count, describe_costs, money, number, p_value_text, percent, plural
from . import alternatives, closing
from .baseline import BaselineSection, build_baseline, worth_sentence
from .cards import DRIFT_NOTE
from .conclusion import conclude, verdict_sentence
from .plots import Span, Stage, funnel, narrow_funnel, timeline
from .sections.candidates import CandidateTables, choose_drawn, list_candidates, sort_by_trial
from .sections.factor_section import FactorSection, SectionBuilder
from .sections.known_days import describe_sealed_days
from .sections.marks import ReportMarks
from .sections.power_curve import draw_power
from .sections.run_notes import RunNotes
from .stress_matrix import StressPage, build_stress_page

if TYPE_CHECKING:
    from ...evaluation.closing import (
        AppliedSettings,
        AttemptCounts,
        Curves,
        OperatorRow,
        OwnParts,
        Results,
        SearchVariety,
        SelectionPower,
        WindowPlan,
    )


MAX_NOTE_TITLE_CHARS = 60
COLOPHON = (
    "Trials are counted over this workspace and every earlier look that was declared; looks made elsewhere "
    "cannot be known. RankIC is the mean daily rank correlation with returns from the next open; "
    "t-statistics use Newey-West errors."
)
OFFLINE_SENTENCE = "Researcher: offline: a heuristic, not a language model."
RETURNS = {"residual": "with market, sector and size taken out", "raw": "as they are"}
Facts = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ReportPage:
    """The content of the template.

    Attributes
    ----------
    title, data_name
        The campaign's name, or that of its data; the data's name beside it.
    doubts
        Title and text of each note on the data.
    timeline, funnel
        A wide and a narrow drawing of each; empty where there is nothing to draw.
    drawn
        Candidates that are shown with their curves, where nothing was accepted.
    known_days
        Which sealed days a model can have read; empty where the record does not say it.
    """

    title: str
    data_name: str
    verdict: str
    worth: str
    conclusion: Sequence[str]
    summary: Facts
    data: Facts
    rules: Facts
    costs: str
    doubts: Facts
    timeline: Sequence[str]
    windows: Facts
    funnel: Sequence[str]
    refused: Facts
    reused: str
    changed: Sequence[Sequence[str]]
    power: str
    power_facts: Facts
    power_curve: str
    others: alternatives.RulesTable | None
    check_rows: Sequence[Sequence[str]]
    checks_note: str
    baseline: BaselineSection | None
    accepted: Sequence[FactorSection]
    unproven: str
    proven: Sequence[FactorSection]
    watched: Sequence[FactorSection]
    drawn: Sequence[FactorSection]
    candidates: CandidateTables
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
    known_days: str
    marks: ReportMarks
    drift_note: str = DRIFT_NOTE
    exam_heads: Sequence[str] = closing.EXAM_COLUMNS

    @property
    def sections(self) -> Sequence[FactorSection]:
        """Return every factor that has a section of its own, in the order of the page."""
        return [*self.accepted, *self.proven, *self.watched, *self.drawn]


def build_page(results: Results, curves: Curves, notes: RunNotes) -> ReportPage:
    """Return the whole page; parts that a run did not reach are a dash or left out."""
    sections = SectionBuilder(results, curves, notes)
    return ReportPage(
        title=notes.name or results.data.name or "a panel",
        data_name=results.data.name if notes.name else "",
        verdict=verdict_sentence(results),
        worth=worth_sentence(results),
        conclusion=conclude(results),
        summary=_list_summary(results),
        data=[*_list_data(results), *([("Licence, as declared", notes.licence)] if notes.licence else [])],
        rules=_list_rules(results.settings),
        costs=_describe_run_costs(results),
        doubts=_list_doubts(results),
        timeline=_draw_timeline(results.windows),
        windows=_list_windows(results.windows),
        funnel=_draw_funnel(results),
        refused=_list_refused(results.attempts),
        reused=describe_reused(results),
        changed=operator_lines(results.operators),
        power=results.power.sentence if results.power else "",
        power_facts=_list_power(results.power),
        power_curve=draw_power(results),
        others=alternatives.build_rules_table(results.stream_rules),
        checks_note=alternatives.SEARCH_TESTS_NOTE if results.superior else "",
        check_rows=[(test.name, test.value, test.means) for test in alternatives.list_search_tests(results)],
        baseline=build_baseline(results),
        accepted=sections.build(sort_by_trial(results.accepted), "accepted"),
        unproven=describe_empty_result(results),
        proven=sections.build(sort_by_trial(results.proven), "proven, not tradable alone", "watched"),
        watched=sections.build(sort_by_trial(results.watchlist), "watched"),
        drawn=sections.build_candidates(choose_drawn(results)),
        candidates=list_candidates(results),
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
        colophon=COLOPHON,
        known_days=_describe_known_days(notes),
        marks=ReportMarks.read(notes.exposure, results),
    )


def _describe_known_days(notes: RunNotes) -> str:
    """Return which sealed days a model can have read: one that wrote what was combined, else any of the run."""
    exposure = notes.exposure
    return describe_sealed_days(exposure.combination or exposure.run) if exposure else ""


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
        ("Symbols", count(data.names)),
        ("Label", f"return from the next open to the open {any_value(windows.horizon_days)} days later"),
        ("Returns", RETURNS.get(windows.returns or "", DASH)),
        ("Embargo between windows", f"{any_value(windows.embargo_days)} days"),
        ("Missing labels (no opening price)", count(windows.search_cells_without_an_open)),
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


def _draw_timeline(windows: WindowPlan) -> list[str]:
    spans: list[Span] = []
    for kind, window in (("search", windows.search), ("selection", windows.selection), ("sealed", windows.sealed)):
        if window is None:
            continue
        first, last = date.fromisoformat(window.first), date.fromisoformat(window.last)
        if spans and (first - spans[-1].last).days > 1:
            spans.append(Span("embargo", "", spans[-1].last, first))
        spans.append(Span(kind, kind.capitalize(), first, last, f"{count(window.days)} days"))
    label = "The windows: search, selection and sealed, with an embargo between them"
    return [timeline(label, spans, narrow=narrow) for narrow in (False, True)] if spans else []


def _draw_funnel(results: Results) -> list[str]:
    attempts, prior = results.attempts, results.prior_trials
    before = f"{prior:,} more before this run" if prior else "none before this run"
    stages = [
        Stage("attempts", attempts.total, f"{count(sum(attempts.refused.values()))} refused before they were scored"),
        Stage("evaluations on search", results.evaluations, _describe_reasons(results)),
        Stage("trials on selection", results.trials, f"each is counted for good; {before}"),
        Stage("accepted", len(results.accepted), f"and {count(len(results.watchlist))} to watch"),
    ]
    label = "Attempts, evaluations, trials and acceptances, on a logarithmic scale"
    return [funnel(label, stages), narrow_funnel(label, stages)]


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


def _list_doubts(results: Results) -> list[tuple[str, str]]:
    """Return title and text of each note on the data; the title is empty where a note has none."""
    notes = dict.fromkeys([*results.data.notes, *collect_notes(results, data_only=True)])
    return [_split_note(note) for note in notes]


def _split_note(note: str) -> tuple[str, str]:
    title, colon, text = note.partition(": ")
    return (title, text) if colon and len(title) <= MAX_NOTE_TITLE_CHARS else ("", note)


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
    text += f" (effective number: {variety.effective:.1f}{_describe_even_draws(variety)})"
    if variety.niches:
        text += f", filling {plural(variety.niches, 'cell')} of mechanism x horizon x turnover"
    if not variety.refused:
        return f"{text}."
    return f"{text}; {variety.refused} more got no branch, most because they repeated one."


def _describe_even_draws(variety: SearchVariety) -> str:
    """Return what chance gives beside an effective number of mechanisms."""
    from ...evaluation.checks import compare_mechanisms

    found = compare_mechanisms(variety.effective, variety.hypotheses, variety.mechanisms)
    if found is None:
        return ""
    beside = f"; by chance it would be {found.null:.1f}, and in 5 % of draws below {found.limit:.1f}"
    return f"{beside}: fewer than chance" if found.alike else beside


BOUND_SENTENCE = "The next section says how strong a factor would have had to be."


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
