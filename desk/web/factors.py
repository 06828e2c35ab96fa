"""The page of any scored factor of a run: why it should work, what it is, how it came about, and what was found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from ...evaluation import AWAITING
from ...ledger import cut_listed, cut_member
from ..errors import DeskError
from ..facts.similar import describe_likeness, find_nearest_formulas, index_library, list_standard_names
from ..figures import (
    count,
    describe_added_value,
    describe_costs,
    money,
    number,
    p_value_text,
    plural,
    short_id,
)
from ..formula_views import DialectText, TreeBranch, draw_tree, read_formula, write_dialects
from ..lineage import Lineage, LineageReader
from ..profile import profile_rows
from ..report.cards import Card, CardContext, build_card, list_weak_points
from ..report.case_page import list_idea
from ..report.factor_page import (
    StressSection,
    build_stress,
    describe_strength,
    draw_exposures,
    draw_regimes,
)
from ..report.gate_steps import find_deciding_step, list_steps
from ..report.sections.trial_price import list_trial
from .campaigns import UNDECIDED
from .pages import PageRequest
from .review import is_blind_for, send_to_judge
from .tear_sheet import TearSheet, build_tear_sheet

if TYPE_CHECKING:
    from ...evaluation.closing import DailyRankICByWindow, FactorEntry, SealedFactor
    from ...factors import Expression
    from ...factors.similarity import Likeness
    from ...ledger import Evaluation, Ledger, Run, VerdictRow

Pairs = Sequence[tuple[str, str]]
MAX_NEAREST_KNOWN = 5
FACTOR_PILLS = {"accepted": "accepted", "watchlist": "watched", AWAITING: "awaiting", "member": "awaiting"}
"""Style of the pill of a verdict; any other is drawn as a rejection, and a factor without one has none."""
RESULTS_FILE = "results.json"
RESULT_PARTS = ("power", "stress", "truth", "sealed")


@dataclass(frozen=True)
class NearFormula:
    """A known formula that shares a part; `why` says in words how much."""

    name: str
    where: str
    text: str
    ratio: float
    shared: str
    why: str


@dataclass(frozen=True)
class FormulaSection:
    """What a factor computes: in words, in other dialects, as a tree; `problem` says why a part is missing."""

    dialects: Sequence[DialectText]
    tree: TreeBranch | None
    nearest: Sequence[NearFormula]
    problem: str


@dataclass(frozen=True)
class ScoredFactorPage:
    """One factor of a run; figures of selection days are there only if it had a trial.

    Attributes
    ----------
    stands
        Where it stands, in a sentence.
    account
        How it came about and what was found, in sentences made from the record alone.
    price
        What its trial had to show, and what would have been significant; or what the next trial would have to.
    spent
        What the model calls that led to it cost, in a sentence.
    has_case, has_curve
        Whether a person decides or decided on it; whether its daily series is on record.
    """

    run: str
    id: str
    standing: str
    pill: str
    stands: str
    idea: Pairs
    account: Sequence[str]
    card: Card
    costs: str
    formula: FormulaSection
    tear_sheet: TearSheet
    price: Pairs
    profile: Pairs
    regimes: str
    exposures: str
    stress: StressSection | None
    lineage: Lineage
    spent: str
    has_case: bool
    has_curve: bool
    in_library: bool


@dataclass(frozen=True)
class FactorRecord:
    """Everything on record about one factor of a run.

    Attributes
    ----------
    found
        Its entry in the run's results, or in the file of its case; empty before either is written.
    results
        The parts of the run's results that the page shows (`RESULT_PARTS`); empty before its end.
    curve
        Its daily RankIC; None where that is not on record.
    sealed
        Its figures on the sealed (hold-out) days; None where those were not opened for it.
    """

    ledger: Ledger
    run: Run
    score: Evaluation
    verdict: VerdictRow | None
    standing: str
    entry: FactorEntry
    found: Mapping[str, Any]
    results: Mapping[str, Any]
    curve: DailyRankICByWindow | None
    sealed: SealedFactor | None


def find_factor(ledger: Ledger, name: str, factor: str) -> FactorRecord:
    """Return what is on record about a scored factor of a campaign.

    Raises
    ------
    UnknownRun
        There is no such campaign.
    DeskError
        The campaign scored no factor of this id.
    """
    from ...evaluation import Reviews, find_campaign

    run = find_campaign(ledger, name)
    score = ledger.evaluations.get(run.id, factor)
    if score is None:
        raise DeskError(
            "This campaign scored no such factor.",
            field="factor",
            got=factor[:64],
            hint=f"Its factors are at /runs/{run.id}.",
            code="unknown_factor",
        )
    verdict, reviews = ledger.verdicts.get(run.id, factor), Reviews.of(ledger, run)
    body = ledger.artefacts.read(run.id, RESULTS_FILE) or b""
    results = {name: cut_member(body, name) for name in RESULT_PARTS}
    word, found = _find_result(body, factor)
    if not found and ledger.events.get(run.id, "case-file", factor):
        found = reviews.file(factor)
    standing = reviews.word(verdict) if verdict else "member" if word == "members" else UNDECIDED
    entry = _read_entry(ledger, score, verdict, found)
    curve = _read_curve(ledger, run.id, factor, found)
    sealed = _read_sealed(ledger, run.id, factor, results)
    return FactorRecord(ledger, run, score, verdict, standing, entry, found, results, curve, sealed)


def _find_result(body: bytes, factor: str) -> tuple[str, Mapping[str, Any]]:
    """Return the list of results that holds a factor, and its entry; empty where none does."""
    from ...evaluation.closing import VERDICTS

    rows = ((word, cut_listed(body, word, factor)) for word in VERDICTS)
    return next(((word, entry) for word, entry in rows if entry), ("", {}))


def _read_entry(ledger: Ledger, score: Evaluation, verdict: VerdictRow | None, found: Mapping[str, Any]) -> FactorEntry:
    """Return the factor as the results have it, or as far as the ledger alone tells before they are written."""
    from ...evaluation.closing import FactorEntry

    if found:
        return FactorEntry.read(found)
    members = ledger.events.get(score.run, "set", score.factor_id)
    record = {
        "id": score.factor_id,
        "text": score.text,
        "hypothesis": _read_claim(ledger, score),
        "reasons": list(verdict.reasons) if verdict else [],
        "metrics": {"search": score.sheet, "selection": verdict.metrics.get("selection") if verdict else None},
        "trial": verdict.metrics.get("trial") if verdict else None,
        "members": list(members.body) if members else None,
    }
    return FactorEntry.read({key: value for key, value in record.items() if value is not None})


def _read_claim(ledger: Ledger, score: Evaluation) -> Mapping[str, Any] | None:
    """Return the hypothesis as it was judged: the mechanism that was stated after scoring, where it stands."""
    from ...evidence import MECHANISM_EVENT

    stated = ledger.events.get(score.run, MECHANISM_EVENT, score.factor_id)
    if stated and stated.body.get("stands"):
        claim: Mapping[str, Any] = stated.body["claim"]
        return claim
    event = ledger.events.get(score.run, "claim", score.hypothesis)
    return event.body if event else None


def _read_curve(ledger: Ledger, run: str, factor: str, found: Mapping[str, Any]) -> DailyRankICByWindow | None:
    from ...evaluation.closing import DailyRankICByWindow

    body = found.get("curve") or cut_member(ledger.artefacts.read(run, "curves.json") or b"", factor)
    return DailyRankICByWindow.read(body) if body else None


def _read_sealed(ledger: Ledger, run: str, factor: str, results: Mapping[str, Any]) -> SealedFactor | None:
    """Return a factor's figures of the sealed days, from the close or opened later."""
    from ...evaluation.closing import SealedExam

    later = ledger.artefacts.read(run, "sealed.json")
    exam = json.loads(later) if later else results.get("sealed")
    return SealedExam.read(exam).factors.get(factor) if exam else None


def load_factor(view: PageRequest) -> ScoredFactorPage | Response:
    """Return the page of a scored factor; whoever must judge it blind first is sent to the page for that."""
    from ...evaluation import Reviews

    record = find_factor(view.ledger, view.path["run"], view.path["factor"])
    if is_blind_for(view, Reviews.of(view.ledger, record.run), record.score.factor_id):
        return send_to_judge(record.run.id, record.score.factor_id)
    lineage = LineageReader(view.ledger, record.run).read(record.score.factor_id)
    formula, explained = _describe_formula(record)
    entry = record.entry if record.entry.explained else record.entry.model_copy(update={"explained": explained})
    profile = entry.profile
    card = build_card(entry, record.curve, _gather_context(record))
    case = view.ledger.events.get(record.run.id, "case", entry.id)
    return ScoredFactorPage(
        run=record.run.id,
        id=entry.id,
        standing=record.standing,
        pill="" if record.standing == UNDECIDED else FACTOR_PILLS.get(record.standing, "rejected"),
        stands=_describe_standing(record),
        idea=list_idea(entry.hypothesis, _read_hypothesis(view.ledger, record.score)),
        account=list(_tell(record, lineage)),
        card=card if record.curve else replace(card, cumulative=""),
        costs=describe_costs(_read_costs(record)),
        formula=formula,
        tear_sheet=build_tear_sheet(entry, record.curve),
        price=list_price(record),
        profile=[*(profile_rows(profile) if profile else []), *_list_added(entry)],
        regimes=draw_regimes([("search", profile)]) if profile and profile.by_regime else "",
        exposures=draw_exposures([("search", profile)]) if profile and profile.exposures else "",
        stress=_find_stress(record),
        lineage=lineage,
        spent=_describe_spending(lineage),
        has_case=case is not None,
        has_curve=record.curve is not None,
        in_library=any(row.factor_id == entry.id for row in view.ledger.library.rows()),
    )


def _read_hypothesis(ledger: Ledger, score: Evaluation) -> Mapping[str, Any]:
    event = ledger.events.get(score.run, "agents.hypothesis", score.hypothesis)
    return event.body if event else {}


def _gather_context(record: FactorRecord) -> CardContext:
    """Return what the card shows beside the entry: members, sealed figures, and the truth of a synthetic market."""
    from ...evaluation.closing import PlantedTruth

    ledger, run, entry = record.ledger, record.run.id, record.entry
    scores = [ledger.evaluations.get(run, name) for name in entry.members or ()]
    rows = [row for row in scores if row]
    hypotheses = {}
    for row in rows:
        claim = _read_claim(ledger, row) or {}
        hypotheses[row.factor_id] = "" if claim.get("either_way") else str(claim.get("statement", ""))
    truths = (truth for truth in record.results.get("truth") or () if truth.get("id") == entry.id)
    truth = next(truths, None)
    days = record.curve.selection.dates if record.curve else ()
    return CardContext(
        days[0] if days else None,
        {row.factor_id: row.text for row in rows},
        hypotheses,
        record.sealed,
        PlantedTruth.read(truth) if truth else None,
    )


def _read_costs(record: FactorRecord) -> Any:
    from ...evaluation.closing import CostRates

    costs = (record.run.config["settings"].get("evidence") or {}).get("costs")
    return CostRates.read(costs) if costs else None


def _list_added(entry: FactorEntry) -> Pairs:
    return [("beside the library, on search", describe_added_value(entry.incremental))] if entry.incremental else []


def _find_stress(record: FactorRecord) -> StressSection | None:
    table = record.results.get("stress") or {}
    found = (table.get("factors") or {}).get(record.entry.id)
    return build_stress({**found, "rule": table.get("rule", "")}) if found else None


# The formula.


def _describe_formula(record: FactorRecord) -> tuple[FormulaSection, str]:
    """Return the views of the formula, and it in words; a formula that this version cannot read keeps its text."""
    from ...factors import FactorError, explain

    try:
        expression = read_formula(record.score.text, record.score.sheet.get("fields") or ())
    except FactorError as error:
        return FormulaSection([], None, [], f"This version cannot read the formula: {error.message}"), ""
    nearest = _find_nearest(record, expression)
    rows = [describe_likeness(expression, one) for one in nearest]
    lines = [NearFormula(row["id"], row["where"], row["text"], row["ratio"], row["shared"], row["why"]) for row in rows]
    problem = "It is Python code; the tree is its equivalent in the language." if expression.code else ""
    tree = draw_tree(expression, nearest[0] if nearest else None)
    return FormulaSection(write_dialects(expression), tree, lines, problem), explain(expression)


def _find_nearest(record: FactorRecord, expression: Expression) -> list[Likeness]:
    """Return the known formulas that share most, without the factor itself, its sets, and the members of its own."""
    own = {record.entry.id, *(record.entry.members or ())}
    top = MAX_NEAREST_KNOWN + len(own)
    found = find_nearest_formulas(expression, top, index_library(record.ledger, list_standard_names()))
    return [one for one in found if one.known.name not in own][:MAX_NEAREST_KNOWN]


# What its trial had to show.


def list_price(record: FactorRecord) -> Pairs:
    """Return what a factor's trial had to show and showed; without one, what the run's next trial would have to."""
    if paid := list_trial(record.entry):
        return paid
    power = record.results.get("power") or {}
    if not power:
        return []
    return [
        ("tests made on these days", count(power.get("trials"))),
        ("threshold of the next test", p_value_text(power.get("p_required"))),
        ("smallest RankIC that it could prove", number(power.get("rank_ic_provable"), 4)),
        ("true RankIC that it would prove four times in five", number(power.get("rank_ic_likely"), 4)),
    ]


# The account: sentences made from the record alone.


def _describe_standing(record: FactorRecord) -> str:
    """Return where a factor stands, with the step that decided it."""
    steps, failed = list_steps(record.entry), find_deciding_step(record.entry)
    if record.verdict is None:
        why = failed or (steps[0] if steps else None)
        return _end(why.message[:1].upper() + why.message[1:]) if why else "Scored on search days, and not tested."
    if record.standing == AWAITING:
        return "It passed every step of the gate, and waits for a person's approval."
    return _end(f"{record.verdict.verdict} at {failed.step}: {failed.message}" if failed else "It passed the gate")


def _end(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."


def _tell(record: FactorRecord, lineage: Lineage) -> Iterator[str]:
    entry = record.entry
    yield from _tell_origin(record, lineage)
    search = entry.metrics.search
    span = f"{search.window.first} to {search.window.last}" if search.window else "the search days"
    yield f"{describe_strength(search)} Those days are {span}."
    if weak := list_weak_points(entry):
        yield f"Weak points seen there: {'; '.join(weak)}."
    steps = list_steps(entry) if record.verdict else []
    passed = [step.step for step in steps if step.mark == "passed"]
    if passed:
        yield f"It passed {plural(len(passed), 'step')} of the gate: {', '.join(passed)}."
    for step in steps:
        if step.mark == "failed":
            yield _end(f"It failed at {step.step}: {step.message}")
    yield from _tell_selection(record)
    yield from _tell_decision(record)
    if lineage.calls:
        yield _describe_spending(lineage)


def _tell_origin(record: FactorRecord, lineage: Lineage) -> Iterator[str]:
    stated = record.entry.hypothesis
    if record.entry.members:
        fixed = record.ledger.events.get(record.run.id, "weighing", record.entry.id)
        weights = fixed.body.get("weights") or {} if fixed else {}
        parts = [f"{short_id(name)} {number(weights.get(name), 2)}" for name in record.entry.members]
        yield f"It is a combination of {len(parts)} factors, weighed on search days: {', '.join(parts)}."
    elif stated and stated.either_way:
        yield "It came from a survey of the data: nobody stated a mechanism before it was scored."
    elif stated and stated.statement:
        late = " after it was scored" if stated.stated_after_scoring else ""
        yield _end(f"The mechanism that was stated{late}: {stated.statement}")
    if not lineage.steps:
        return
    last, changes = lineage.steps[-1], len(lineage.steps) - 1
    kin = f"after {plural(changes, 'change')} of an earlier formula, {lineage.steps[0].text}" if changes else "anew"
    yield f"The Factor agent wrote it {kin} (attempt {last.key})."
    if last.weakness:
        yield f"The last change ({last.intent}) was made of a formula with this weak point: {last.weakness}."


def _tell_selection(record: FactorRecord) -> Iterator[str]:
    selection = record.entry.metrics.selection
    if selection is None or record.entry.trial is None:
        yield "It had no test of its own on selection days, so no figure of those days is known."
        return
    against = f"p = {p_value_text(selection.p_value)} against a threshold of {p_value_text(selection.level)}"
    yield f"On selection days its RankIC was {number(selection.rank_ic, 4, sign=True)}: {against}."


def _tell_decision(record: FactorRecord) -> Iterator[str]:
    from ...evaluation import Reviews

    decision = Reviews.of(record.ledger, record.run).decision(record.entry.id)
    if decision:
        yield _end(decision.sentence)
    if sealed := record.sealed:
        figures = f"RankIC {number(sealed.rank_ic, 4, sign=True)}, p = {p_value_text(sealed.p_value)}"
        yield f"On the sealed (hold-out) days: {figures}."


def _describe_spending(lineage: Lineage) -> str:
    calls = lineage.calls
    tokens = sum(call.tokens_in + call.tokens_out for call in calls)
    cost = money(sum(call.cost_usd for call in calls))
    return f"{plural(len(calls), 'model call').capitalize()} led to it: {count(tokens)} tokens, {cost}."
