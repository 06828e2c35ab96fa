"""The evaluation service: the only access to scores and verdicts; it enforces windows, budgets and the record."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..evidence import (
    SET_PREFIX,
    EvidenceSettings,
    OverLimits,
    Proposal,
    PythonRefused,
    Window,
    Windows,
    make_plain_error,
    reserved_name_error,
)
from ..evidence.gate import AcceptanceGate, PriceLevelTest, list_doubts
from ..evidence.scoring import Profiler, Scorer
from ..evidence.stress import STRESS_RULE_TEXT, STRESS_SEED, After, run_stress_tests
from ..evidence.values import Computing, TimeSteps
from ..factors import Expression, FactorError, ParseError, explain
from ..ledger import Attempt, Evaluation, Ledger, Stage
from ..market import Panel, adjust_forwards, keep_members
from ..search import SearchConstraints
from ..search.surrogate import Samples, SurrogateModel
from .batches import RemoteSheets
from .budget import Budget, BudgetMeter
from .panel_factors import PanelFactors
from .pending_cases import Reviews
from .refusals import find_refusal, known_seed, refusal_warnings, refuse_by_running
from .run_library import RunLibrary
from .score_log import RunLog, Scores
from .search_scoring import SearchScoring
from .submissions import Submissions

Values = NDArray[np.float32]


@dataclass(frozen=True)
class Evaluator:
    """Scores and judges factors of one panel for one run, and records every request in the ledger.

    A lock serialises requests: a server's tools run on threads, and two proposals that both see one evaluation left
    would both take it.

    A caller that needs one part takes that service: `factors` (formulas and their values), `library` (what a candidate
    is compared with), `meter` (the budget), `submissions` (the gate).
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
    remote: RemoteSheets | None = field(default=None, repr=False, compare=False)
    turn: AbstractContextManager[Any] = field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    log: RunLog = field(init=False, repr=False, compare=False)
    factors: PanelFactors = field(init=False, repr=False, compare=False)
    library: RunLibrary = field(init=False, repr=False, compare=False)
    meter: BudgetMeter = field(init=False, repr=False, compare=False)
    scoring: SearchScoring = field(init=False, repr=False, compare=False)
    submissions: Submissions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Create the services eagerly: of lazy ones, two threads could create two."""
        log = RunLog(self.ledger, self.run)
        factors = PanelFactors(self.engine, self.panel, self.windows, self.mandate, log)
        reviews = Reviews(self.ledger, self.run, self.approve)
        library = RunLibrary(factors, self.scorer, reviews, self.settings)
        meter = BudgetMeter(self.budget, self.windows, log)
        scoring = SearchScoring(factors, self.scorer, library, self.settings, self.remote)
        gate = AcceptanceGate(self.scorer, self.windows, self.ledger, self.settings, self.run, self.engine, self.pace)
        submissions = Submissions(gate, scoring, meter, self.turn)
        services = {"log": log, "factors": factors, "library": library, "meter": meter, "scoring": scoring}
        for name, service in {**services, "submissions": submissions}.items():
            object.__setattr__(self, name, service)

    @property
    def panel(self) -> Panel:
        """Return the panel that factors are scored on."""
        return self.scorer.panel

    @property
    def scores(self) -> Scores:
        """Return the run's evaluations by factor id."""
        return self.log.scores

    @property
    def reviews(self) -> Reviews:
        """Return the cases of this run that a person decides on."""
        return self.library.reviews

    @cached_property
    def surrogate(self) -> SurrogateModel:
        """Return the surrogate model, which forecasts unscored formulas; see `drafts`."""
        columns = self.mandate.columns(self.panel)
        return SurrogateModel.of(self.engine.panel, self.windows.search, columns, self.budget.evaluations, self.samples)

    @cached_property
    def levels(self) -> PriceLevelTest:
        """Return the test for factors that read the level of back-adjusted prices."""
        return PriceLevelTest(self.engine.panel, self.windows.search, self.engine)

    def read(self, text: str, dialect: str = "alphaloom") -> Expression:
        """Parse a formula of this panel's fields, or the code of a Python factor."""
        return self.factors.read(text, dialect)

    def values(self, expression: Expression, through: Window | None = None) -> Values:
        """Return the values of a factor, `[T, N]`, NaN outside the universe; see `PanelFactors.values`."""
        return self.factors.values(expression, through)

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
        if self.ledger.events.get(self.run, "claim", proposal.claim.id) is None:
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
            if earlier := self.log.refused_runs.find_refusal(proposal.key):
                return earlier
            row = self._evaluate(expression, proposal.claim.id)
        except PythonRefused as error:
            answer = self._refuse(proposal, error.stage, [make_plain_error(error.message, error.hint)], expression.id)
            return self.log.refused_runs.add(proposal.key, answer) if error.ran else answer
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
        row = self.scores.get(expression.id)
        if row is None and self.meter.evaluations_left() > 0:
            refuse_by_running(self, expression)
            row = self.scoring.record(expression, hypothesis)
        return row

    def facts(self, row: Evaluation) -> dict[str, Any]:
        """Return the search facts of a factor of this run, in the form of `propose`."""
        sheet = {key: value for key, value in row.sheet.items() if key not in {"weaknesses", "merit", "fields"}}
        stamps = self.panel.stamps
        sheet["warnings"] = [note for note in sheet["warnings"] if note["code"] != "data" or note["message"] in stamps]
        expression = self.read(row.text)
        return {
            "id": row.factor_id,
            "text": expression.shown,
            "explained": explain(expression),
            "sheet": sheet,
            "weaknesses": [*row.sheet["weaknesses"], *known_seed(self, expression)],
            "merit": row.sheet["merit"],
        }

    def score(self, text: str, dialect: str = "alphaloom") -> dict[str, Any]:
        """Return a factor's `FactorSheet` on search as JSON; nothing is recorded, and only look-ahead is refused."""
        expression = self.read(text, dialect)
        self.factors.search_engine.screen(expression)
        values = self.values(expression)
        sheet = self.scoring.measure(expression) | Profiler(self.scorer, self.windows.search).profile(values)
        doubts = [
            *sheet["warnings"],
            *({key: str(weakness[key]) for key in ("code", "message")} for weakness in sheet["weaknesses"]),
        ]
        doubts += refusal_warnings(self, expression)
        added = self.library.added_value.addition(values, but=expression.id)
        if added and (sentence := added.doubt(sheet["rank_ic"])):
            doubts.append({"code": "adds_little", "message": sentence})
        doubts += [{"code": "python" if expression.code else "units", "message": text} for text in expression.warnings]
        figures = {key: value for key, value in sheet.items() if key not in {"weaknesses", "merit", "fields"}}
        beside = {
            "daily": self.scorer.record_daily_rank_ic(values, self.windows.search),
            "incremental": added.record() if added else None,
            "warnings": doubts,
        }
        return figures | {"id": expression.id, "text": expression.text, "explained": explain(expression)} | beside


def stress_on_search(
    evaluator: Evaluator, expressions: Sequence[Expression], after: After | None = None
) -> dict[str, Any]:
    """Run every stress test on formulas over the search window only; `after` is as for `run_stress_tests`.

    Returns
    -------
    dict
        `{window, seed, rule, factors}`, `factors` by id: `{sentence, clean, weaknesses, scenarios}`.
    """
    window = evaluator.windows.search
    sold, level = evaluator.panel, evaluator.engine.panel
    # Without a quoted close, dollar volume can only be computed at the vendor's own level of volumes.
    panel = (level if "close_raw" in sold.fields else sold).rows(window.start, window.stop)
    panel = keep_members(panel)  # or the number of later names would change the random draws

    def evaluate(altered: Panel) -> list[NDArray[np.float32]]:
        return evaluator.engine.on(adjust_forwards(altered)).forgiving(PythonRefused, OverLimits).evaluate(expressions)

    results = run_stress_tests(evaluate, panel, evaluator.settings, STRESS_SEED, after)
    return {
        "window": {"name": window.name, "first": window.first_day, "last": window.last_day},
        "seed": STRESS_SEED,
        "rule": STRESS_RULE_TEXT,
        "factors": {expression.id: result.record() for expression, result in zip(expressions, results, strict=True)},
    }
