"""The evaluation service: the only access to scores and verdicts; it enforces windows, budgets and the record."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..evidence import (
    SET_PREFIX,
    Claim,
    EvidenceError,
    EvidenceSettings,
    Proposal,
    PythonRefused,
    Window,
    Windows,
    make_plain_error,
    reserved_name_error,
)
from ..evidence.gate import (
    DECAYING_EVENT,
    PAID_EVENT,
    AcceptanceGate,
    Case,
    PriceLevelTest,
    Surroundings,
    Verdict,
    compute_complexity_price,
    daily_sharpes,
    list_doubts,
    make_trials_spent_error,
    write_rank_sum,
)
from ..evidence.originality import (
    AddedValue,
    Catalogue,
    KnownLibrary,
    LibraryValues,
    read_published,
    values_of_published,
)
from ..evidence.scoring import Profiler, Scorer, round_significant
from ..evidence.values import Computing, TimeSteps, read_screening_seed
from ..factors import Expression, FactorError, ParseError, explain, parse
from ..factors.similarity import KnownFormula
from ..ledger import Attempt, Evaluation, Ledger, LibraryRow, Stage
from ..library import choose_own_text, list_comparable, list_decaying, read_retired
from ..market import Panel
from ..search import SearchConstraints
from ..search.surrogate import Samples, SurrogateModel
from .budget import Budget, RefusedRuns
from .pending_cases import Reviews
from .refusals import find_refusal, known_seed, known_values, refusal_warnings, refuse_by_running
from .score_log import ProposalLog, Scores
from .weaknesses import name_weaknesses

Values = NDArray[np.float32]
MAX_SET_MEMBERS = 10


@dataclass(frozen=True)
class Evaluator:
    """Scores and judges factors of one panel for one run, and records every request in the ledger.

    A lock serialises requests: a server's tools run on threads, and two proposals that both see one evaluation left
    would both take it.
    """

    engine: Computing
    scorer: Scorer
    windows: Windows
    ledger: Ledger
    settings: EvidenceSettings
    budget: Budget
    run: str
    python: bool = True
    mandate: SearchConstraints = field(default_factory=SearchConstraints)
    approve: bool = False
    samples: Samples = field(default_factory=Samples, repr=False, compare=False)
    pace: TimeSteps | None = None
    turn: AbstractContextManager[Any] = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    @cached_property
    def rows(self) -> Scores:
        """Return the run's evaluations by factor id."""
        return Scores(self.ledger, self.run)

    @cached_property
    def ran(self) -> RefusedRuns:
        """Return the refusals of code that ran."""
        return RefusedRuns(self.ledger, self.run)

    @property
    def panel(self) -> Panel:
        """Return the panel that factors are scored on."""
        return self.scorer.panel

    @cached_property
    def foresight(self) -> SurrogateModel:
        """Return the surrogate model, which forecasts unscored formulas; see `drafts`."""
        columns = self.mandate.columns(self.panel)
        return SurrogateModel.of(self.engine.panel, self.windows.search, columns, self.budget.evaluations, self.samples)

    @property
    def reviews(self) -> Reviews:
        """Return the cases of this run that a person decides on."""
        return Reviews(self.ledger, self.run, self.approve)

    @cached_property
    def gate(self) -> AcceptanceGate:
        """Return the acceptance gate of this run."""
        return AcceptanceGate(self.scorer, self.windows, self.ledger, self.settings, self.run, self.engine, self.pace)

    @cached_property
    def levels(self) -> PriceLevelTest:
        """Return the test for factors that read the level of back-adjusted prices."""
        return PriceLevelTest(self.engine.panel, self.windows.search, self.engine)

    def read(self, text: str, dialect: str = "alphaloom") -> Expression:
        """Parse a formula of this panel's fields, or the code of a Python factor."""
        return parse(text, fields=self.mandate.names(self.panel.fields), dialect=dialect)

    @cached_property
    def searched(self) -> Computing:
        """Return the engine that shows code no day after the search window."""
        return self.engine.until(self.windows.search.stop, read_screening_seed(self.ledger, self.run))

    def values(self, expression: Expression, through: Window | None = None) -> Values:
        """Return the values of a factor, `[T, N]`, NaN outside the universe.

        Values of Python code end with the search window. Through a later window they are computed day by day, only for
        factors that the gate has swept; they are NaN from the day of a fault on.
        """
        if through is None or not expression.code:
            return self.searched.evaluate([expression])[0]
        return self.engine.sweep(expression, self.windows.edges(through, self.panel.days)).values

    # Budgets, and known formulas.

    def evaluations_spent(self) -> int:
        """Count the scored single factors and the refusals of code that ran; sets are outside the budget."""
        return self.rows.singles + len(self.ran)

    def evaluations_left(self) -> int:
        """Count the evaluations that the budget still allows."""
        return max(self.budget.evaluations - self.evaluations_spent(), 0)

    def trials_left(self) -> int:
        """Count the trials that the budget still allows."""
        return max(self.budget.trials - self.trials_spent(), 0)

    def trials_spent(self) -> int:
        """Count the trials that this run opened, or was charged for after another run was cut short."""
        trials = self.ledger.trials.overlapping(self.windows.key(self.windows.selection))
        return sum(trial.run == self.run for trial in trials) + len(self.ledger.events.of(self.run, PAID_EVENT))

    def begin(self) -> None:
        """Record the library at the start of the run, so that later additions of other runs do not affect it."""
        self.reviews.settle()
        factor_ids = [row.factor_id for row in self.ledger.library.rows()]
        bodies = {"library": factor_ids, "retired": sorted(read_retired(self.ledger, self.run))}
        for kind, body in {**bodies, DECAYING_EVENT: list_decaying(self.ledger, self.windows)}.items():
            if not self.ledger.events.of(self.run, kind):
                self.ledger.events.record(self.run, kind, "start", body)

    @cached_property
    def _library_at_start(self) -> frozenset[str] | None:
        events = self.ledger.events.of(self.run, "library")
        return frozenset(events[0].body) if events else None

    def library(self) -> list[LibraryRow]:
        """Return the library as this run sees it: its state at the start, and the run's accepted and waiting ones."""
        rows, at_start = self.ledger.library.rows(), self._library_at_start
        accepted = {row.factor_id for row in self.ledger.verdicts.of(self.run) if self.reviews.word(row) == "accepted"}
        visible = {row.factor_id: row for row in rows if at_start is None or row.factor_id in at_start | accepted}
        visible |= {row.factor_id: row for row in self.reviews.undecided() if row.factor_id not in visible}
        return [visible[name] for name in sorted(visible)]

    def known(self) -> Catalogue:
        """Return the known formulas: the published factors and the workspace's library."""
        return Catalogue((*([read_published()] if self.settings.published else []), *self._holdings.shelves))

    @cached_property
    def _holdings(self) -> KnownLibrary:
        return KnownLibrary(self.ledger.workspace, self._parse_row, self.library())

    def _parse_row(self, row: LibraryRow) -> Expression:
        fields = tuple({*self.panel.fields, *row.sheet.get("fields", ())})
        return parse(choose_own_text(row.factor_id, row.text, row.canonical, fields), fields=fields, refuse_units=False)

    def compared(self) -> list[LibraryRow]:
        """Return the library rows that make a candidate redundant; retired ones only if the settings say so."""
        return list_comparable(self.ledger, self.run, self.library(), self.settings.library)

    @cached_property
    def library_values(self) -> LibraryValues:
        """Return the values of the library's factors that this panel can compute."""
        engine = self.searched.forgiving(PythonRefused)  # code that fails on this panel is NaN here
        return LibraryValues(engine, self.windows.search, self.ledger.workspace, self._parse_row, self.compared())

    @cached_property
    def published_values(self) -> LibraryValues:
        """Return the values of the published factors that this panel can compute; sketched once for a panel."""
        return values_of_published(self.searched, self.windows.search, self.ledger.workspace, self.settings)

    @cached_property
    def beside(self) -> AddedValue:
        """Return the measure of incremental value beside the library."""
        return AddedValue.of(self.library_values, self.scorer, self.windows.search)

    # Scoring on search.

    def propose(self, proposal: Proposal) -> dict[str, Any]:
        """Check, score and record a proposal on the search window.

        Returns
        -------
        dict
            `{ok: true, id, text, explained, sheet, weaknesses, merit}`, or `{ok: false, stage, errors}` with
            `errors` a list of `{message, hint, at}`; `at` is a column of the text or None. Search facts only.

        Raises
        ------
        EvidenceError
            The hypothesis has a name that is reserved for sets, or its id or the key has other contents already.
        """
        if proposal.claim.id.startswith(SET_PREFIX):  # or its score would be outside the budget, as a set's is
            raise reserved_name_error(proposal.claim.id)
        with self.turn:
            return self._propose(proposal)

    def _propose(self, proposal: Proposal) -> dict[str, Any]:
        proposal.refuse_retold(self.ledger, self.run)
        self.ledger.events.record(self.run, "claim", proposal.claim.id, proposal.claim.record())
        try:
            expression = self.read(proposal.text)
        except ParseError as error:
            errors = [
                {"message": mistake.message, "hint": mistake.hint, "at": mistake.at} for mistake in error.mistakes
            ]
            return self._refuse(proposal, error.stage, errors)
        try:
            if refusal := find_refusal(self, expression, proposal.claim):
                return self._refuse(
                    proposal, refusal[0], [make_plain_error(text) for text in refusal[1]], expression.id
                )
            if earlier := self.ran.told(proposal.key):
                return earlier
            row = self._evaluate(expression, proposal.claim.id)
        except PythonRefused as error:
            answer = self._refuse(proposal, error.stage, [make_plain_error(error.message, error.hint)], expression.id)
            return self.ran.add(proposal.key, answer) if error.ran else answer
        except FactorError as error:
            return self._refuse(proposal, "parse", [make_plain_error(error.message, error.hint)], expression.id)
        if row is None:
            return {
                "ok": False,
                "stage": "budget",
                "errors": [make_plain_error("the campaign's evaluations are used up")],
            }
        self._record_attempt(proposal, expression.id, "scored", "")
        facts = self.facts(row)
        facts["weaknesses"] += list_doubts(expression, proposal.claim, row.sheet, proposal.description)
        return {"ok": True, **facts}

    def _refuse(
        self, proposal: Proposal, stage: str, errors: list[dict[str, Any]], factor_id: str | None = None
    ) -> dict[str, Any]:
        self._record_attempt(
            proposal, factor_id, cast("Stage", stage), "; ".join(str(error["message"]) for error in errors)
        )
        return {"ok": False, "stage": stage, "errors": errors}

    def _record_attempt(self, proposal: Proposal, factor_id: str | None, stage: Stage, reason: str) -> None:
        self.ledger.attempts.add(
            Attempt(self.run, proposal.key, proposal.claim.id, proposal.text, factor_id, stage, reason)
        )

    def _evaluate(self, expression: Expression, hypothesis: str) -> Evaluation | None:
        """Return the recorded evaluation of a factor, or score it if the budget allows; None if it does not."""
        row = self.rows.get(expression.id)
        if row is None and self.evaluations_left() > 0:
            refuse_by_running(self, expression)
            row = self._score(expression, hypothesis)
        return row

    def _score(self, expression: Expression, hypothesis: str) -> Evaluation:
        """Score a factor on search and record it; sets are scored even when the budget of evaluations is spent."""
        row = Evaluation(self.run, expression.id, expression.text, hypothesis, self._measure(expression))
        self.ledger.evaluations.add(row)
        self.rows.add(row)
        return row

    def _measure(self, expression: Expression) -> dict[str, Any]:
        values, search = self.values(expression), self.windows.search
        sheet = self.searched.stamped(expression, self.scorer.examine(values, search).record())
        weaknesses = name_weaknesses(sheet, values, self.scorer.exposures, search) + known_values(self, values)
        merit = abs(float(cast("float", sheet["t"] or 0.0))) - compute_complexity_price(
            expression, self.settings.complexity
        )
        return {
            **sheet,
            "fields": sorted(expression.fields),
            "weaknesses": weaknesses,
            "merit": round_significant(merit),
        }

    def facts(self, row: Evaluation) -> dict[str, Any]:
        """Return the search facts of a factor of this run, in the form of `propose`."""
        sheet = {key: value for key, value in row.sheet.items() if key not in {"weaknesses", "merit", "fields"}}
        stamps = self.panel.stamps
        sheet["warnings"] = [note for note in sheet["warnings"] if note["code"] != "data" or note["message"] in stamps]
        expression = self.read(row.text)
        return {
            "id": row.factor_id, "text": expression.shown, "explained": explain(expression), "sheet": sheet,
            "weaknesses": [*row.sheet["weaknesses"], *known_seed(self, expression)], "merit": row.sheet["merit"],
        }  # fmt: skip

    def score(self, text: str, dialect: str = "alphaloom") -> dict[str, Any]:
        """Return a factor's metrics and profile on search; nothing is recorded, and only look-ahead is refused."""
        expression = self.read(text, dialect)
        self.searched.screen(expression)
        values = self.values(expression)
        sheet = self._measure(expression) | Profiler(self.scorer, self.windows.search).profile(values)
        doubts = [
            *sheet["warnings"],
            *({key: str(weakness[key]) for key in ("code", "message")} for weakness in sheet["weaknesses"]),
        ]
        doubts += refusal_warnings(self, expression)
        added = self.beside.addition(values, but=expression.id)
        if added and (sentence := added.doubt(sheet["rank_ic"])):
            doubts.append({"code": "adds_little", "message": sentence})
        doubts += [{"code": "python" if expression.code else "units", "message": text} for text in expression.warnings]
        figures = {key: value for key, value in sheet.items() if key not in {"weaknesses", "merit", "fields"}}
        beside = {"incremental": added.record() if added else None, "warnings": doubts}
        return figures | {"id": expression.id, "text": expression.text, "explained": explain(expression)} | beside

    # Judging on selection.

    @cached_property
    def tried(self) -> ProposalLog:
        """Return the proposals of the run."""
        return ProposalLog(self.ledger, self.run)

    def claims(self) -> dict[str, Claim]:
        """Return each scored factor's claim."""
        return self.tried.claims()

    def submit(self, ids: Sequence[str]) -> list[Verdict]:
        """Submit scored factors to the gate, in the given order; each that reaches statistics is a trial.

        Raises
        ------
        EvidenceError
            An id was never scored in this run.
        TrialsSpent
            The budget of trials ended; earlier verdicts stay recorded.
        """
        with self.turn:
            return self._submit(ids)

    def _submit(self, ids: Sequence[str]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        batch: list[KnownFormula] = []
        for factor_id in dict.fromkeys(ids):
            case = self._make_case(factor_id)
            verdicts.append(self._judge(case, batch))
            batch.append(KnownFormula.of(factor_id, case.expression, "earlier in this batch"))
        return verdicts

    def submit_set(self, ids: Sequence[str]) -> Verdict:
        """Submit two to ten scored factors to the gate as one: the sum of their signed ranks is one trial."""
        with self.turn:
            return self._submit_set(ids)

    def _submit_set(self, ids: Sequence[str]) -> Verdict:
        members = tuple(self._make_case(factor_id) for factor_id in sorted(set(ids)))
        if not 2 <= len(members) <= MAX_SET_MEMBERS:
            allowed_text = f"2 to {MAX_SET_MEMBERS}"
            raise EvidenceError(
                f"A set has {allowed_text} members.", field="members", got=len(members), allowed=allowed_text
            )
        expression = self.read(write_rank_sum(members))
        if expression.id not in self.rows and self.trials_left() <= 0:
            raise make_trials_spent_error()
        row = self.rows.get(expression.id) or self._score(expression, f"{SET_PREFIX}{expression.id}")
        return self._judge(self._make_set_case(expression, members, row), [])

    def _make_set_case(self, expression: Expression, members: tuple[Case, ...], row: Evaluation) -> Case:
        statement = f"{len(members)} factors chosen on search say more together than alone"
        claim = Claim(
            f"{SET_PREFIX}{expression.id}",
            "set",
            statement,
            1,
            self.settings.horizon_days,
            tuple(sorted(expression.fields)),
        )
        self.ledger.events.record(self.run, "set", expression.id, [part.expression.id for part in members])
        self.ledger.events.record(self.run, "claim", claim.id, claim.record())
        return Case(expression, claim, self.values(expression), row.sheet["rank_ic"], members)

    def _make_case(self, factor_id: str) -> Case:
        row = self.rows.get(factor_id)
        claim = self.tried.claim(factor_id)
        if row is None or claim is None:
            raise EvidenceError(
                f"No factor {factor_id!r} was scored in this campaign.", field="id", got=factor_id,
                allowed="the id of a factor that score_factor answered with",
                hint="Score the formula first; its answer carries the id.", code="unknown_factor",
            )  # fmt: skip
        expression = self.read(row.text)
        return Case(expression, claim, self.values(expression), row.sheet["rank_ic"])

    def _judge(self, case: Case, batch: Sequence[KnownFormula]) -> Verdict:
        name = case.expression.id
        earlier = next((row for row in self.ledger.verdicts.of(self.run) if row.factor_id == name), None)
        verdict = Verdict.restored(earlier) if earlier else self.gate.judge(case, self._collect_surroundings(batch))
        if earlier is None:
            self.ledger.verdicts.add(verdict.row(self.run))
        if verdict.word != "accepted":
            return verdict
        self._keep_accepted(case)
        return replace(verdict, word=self.reviews.word(verdict.row(self.run)))

    def _collect_surroundings(self, batch: Sequence[KnownFormula]) -> Surroundings:
        ratios = daily_sharpes(self.rows.lines[name]._asdict() for name in sorted(self.rows))
        known = self.known().with_batch(batch)
        return Surroundings(known, self.published_values, self.library_values, ratios, self.trials_left())

    def _keep_accepted(self, case: Case) -> None:
        expression, row = case.expression, self.rows.get(case.expression.id)
        sheet = dict(row.sheet) if row else {"fields": sorted(expression.fields)}
        entry = LibraryRow(expression.id, expression.text, expression.shown, case.claim.id, self.run, sheet)
        (self.reviews.wait if self.approve else self.ledger.library.add)(entry)
        self._holdings.show(self.library())
        self.library_values.show(self.compared())
