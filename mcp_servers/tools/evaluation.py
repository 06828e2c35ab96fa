"""The evaluation server: scores on the search window, and verdicts without numbers from any other."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...evaluation import (
    MAX_SET_MEMBERS,
    BudgetMeter,
    Evaluator,
    find_leaders,
    find_unexplored,
    pick_drafts,
    recall_facts,
    state_mechanism,
    stress_on_search,
)
from ...evidence import Claim, Proposal
from ...factors import Expression
from ...factors.describe import replace_invisible
from ...factors.python import is_python
from ...ledger import canonical_json
from ..access import Scope
from ..answers import async_tool, json_tool
from ..arguments import READ_HINTS, SPEND_HINTS, WRITE_HINTS, CallKey, FactorId, FormulaText, VisibleWords
from ..errors import BadArguments, McpServerError
from ..served_caller import CallerEntry, ServedCaller
from ..server import ToolServer

MAX_EXTRA_BYTES = 20_000
MAX_REFUTER_CHARS = 2_000
MAX_DRAFTS = 512
MAX_WAIT_S = 20.0
"""Maximum seconds that a call waits for a job: clients end calls that take a minute."""
MAX_FACTORS_REPORTED = 50


class Hypothesis(BaseModel):
    """What the formula is meant to test."""

    model_config = ConfigDict(extra="allow")

    id: str = Field(min_length=1, max_length=100)
    mechanism: VisibleWords = Field(min_length=1, max_length=200)
    statement: VisibleWords = Field(min_length=1, max_length=2000)
    direction: Literal[1, -1] = Field(description="1: a higher factor means a higher return")
    horizon_days: int = Field(ge=1, le=250)
    fields: list[Annotated[str, Field(max_length=100)]] = Field(max_length=20)

    @model_validator(mode="after")
    def _check_extra_size(self) -> Hypothesis:
        try:
            size = len(canonical_json(self.model_extra or {}).encode())
        except (TypeError, ValueError, RecursionError):
            raise ValueError("its further keys must hold plain JSON, without NaN") from None
        if size > MAX_EXTRA_BYTES:
            raise ValueError(f"its further keys must hold at most {MAX_EXTRA_BYTES} bytes")
        return self


EVALUATION_SCOPES = {
    **dict.fromkeys(
        ("score_factor", "choose_drafts", "list_formulas", "get_budget", "stress_factor", "measure_decay", "get_job"),
        Scope.EVAL_RUN,
    ),
    "submit_to_gate": Scope.GATE_SUBMIT,
}
"""The scope that each tool requires."""


def build_evaluation_server(served: ServedCaller) -> ToolServer:
    """Return the evaluation server of one run."""
    server = ToolServer(
        "alphaloom-evaluation",
        entry=served.entry,
        scopes=EVALUATION_SCOPES,
        reading=Scope.EVAL_RUN,
        instructions="Score factors on the search window as often as the budget allows; submit few of them to the "
        "gate. "
        "A verdict comes with reasons and without numbers. stress_factor and measure_decay begin jobs: ask get_job.",
    )
    _add_scores(server, served)
    _add_forecasts(server, served)
    _add_jobs(server, served)
    _add_resources(server, served)
    return server


def _add_scores(server: ToolServer, served: ServedCaller) -> None:
    @server.tool(annotations=WRITE_HINTS)
    @json_tool
    def score_factor(
        text: FormulaText,
        hypothesis: Hypothesis,
        key: CallKey,
        description: Annotated[str, Field(max_length=1_000, description="what you say of the formula")] = "",
        refuter: Annotated[
            str,
            Field(
                max_length=MAX_REFUTER_CHARS,
                description="a rival formula: states the hypothesis for a factor that was scored without a mechanism",
            ),
        ] = "",
    ) -> dict[str, Any]:
        """Check, score and record a formula or Python factor on the search window; a refusal says which step and why.

        Python needs the scope data:read too, and costs an evaluation once it has run, though it be refused. With
        `refuter` nothing is scored: the mechanism of a scored survey factor is stated, once and before it is submitted.
        It is refuted where the factor's ranks, without what the rival explains, have a RankIC on search days of the
        wrong sign or with |t| below 2; refuted, the factor stays data-mined.
        """
        _require_read_scope(served.entry, text)
        if refuter:
            name = served.evaluator.read(text).id
            return state_mechanism(served.evaluator, name, hypothesis.model_dump(), refuter)
        return served.evaluator.propose(
            Proposal(text, Claim.from_record(hypothesis.model_dump()), key, replace_invisible(description))
        )

    @server.tool(annotations=SPEND_HINTS)
    @json_tool
    def submit_to_gate(
        ids: Annotated[list[FactorId], Field(min_length=1, max_length=20, description="2 to 10 for a combination")],
        key: CallKey,
        as_set: Annotated[
            bool, Field(description="judge their combination, weighed on search days, as one factor, for one trial")
        ] = False,
    ) -> dict[str, Any]:
        """Put scored factors before the acceptance gate; each that reaches statistics spends a trial for good.

        Answers with a verdict and reasons for each, and with no number of a later window.
        """
        if as_set:
            return {"key": key, "verdicts": [served.evaluator.submissions.submit_set(_check_members(ids)).for_agents()]}
        return {"key": key, "verdicts": [verdict.for_agents() for verdict in served.evaluator.submissions.submit(ids)]}

    @server.tool(annotations=READ_HINTS)
    @json_tool
    def get_budget() -> dict[str, Any]:
        """Return how many evaluations and trials are left in this campaign."""
        return _count_budget_left(served.evaluator.meter)


def _require_read_scope(entry: CallerEntry, text: str) -> None:
    """Refuse code of a caller who may not read the panel, since code can report what it read in an error.

    Raises
    ------
    ScopeMissing
        The caller's token lacks data:read.
    """
    if is_python(text) and (missing := entry.caller.check_scope("Python code, which reads the panel", Scope.DATA_READ)):
        raise missing


def _count_budget_left(meter: BudgetMeter) -> dict[str, int]:
    return {"evaluations_left": meter.evaluations_left(), "trials_left": meter.trials_left()}


def _check_members(ids: list[str]) -> list[str]:
    if 2 <= len(ids) <= MAX_SET_MEMBERS:
        return ids
    raise BadArguments(
        "A combination has 2 to 10 members.",
        field="ids",
        got=len(ids),
        allowed=f"2 to {MAX_SET_MEMBERS} ids",
        hint="Leave as_set away to submit factors one by one.",
    )


def _add_forecasts(server: ToolServer, served: ServedCaller) -> None:
    """Add the tools that forecast from earlier scores; see `evaluation.drafts`."""

    @server.tool(annotations=READ_HINTS)
    @json_tool
    def choose_drafts(
        texts: Annotated[
            list[FormulaText],
            Field(min_length=1, max_length=MAX_DRAFTS, description="formulas that were not scored yet"),
        ],
        hypothesis: Hypothesis,
        count: Annotated[int, Field(ge=1, le=64, description="how many to choose")] = 5,
        like: Annotated[FactorId | None, Field(description="a scored factor that the drafts are to improve")] = None,
        either: Annotated[
            bool, Field(description="take what promises the opposite direction too, as `turned`")
        ] = False,
    ) -> dict[str, Any]:
        """Say of formulas that were not scored what earlier scores let expect, and which are most worth an evaluation."""
        claim = Claim.from_record(hypothesis.model_dump())
        return pick_drafts(served.evaluator, texts, claim, count, like or "", either)

    @server.tool(annotations=READ_HINTS)
    @json_tool
    def list_formulas(
        which: Annotated[
            Literal["leaders", "unexplored"],
            Field(
                description="leaders: what was found, scored; unexplored: what nobody wrote yet and is worth a score"
            ),
        ],
        limit: Annotated[int, Field(ge=1, le=64, description="how many at most")] = 10,
    ) -> dict[str, Any]:
        """Return the scored formulas that between them say what was found on search, or those that are most worth a score.

        Leaders come in order of what each adds to those before it. Unexplored ones come in turn: the most promising by
        earlier scores, and the most telling of all; while the search is `surveying`, only the most telling.
        """
        if which == "unexplored":
            return find_unexplored(served.evaluator, limit)
        return {"leaders": [leader.record() for leader in find_leaders(served.evaluator, limit)]}


def _add_jobs(server: ToolServer, served: ServedCaller) -> None:
    def scored(name: str) -> Expression:
        """Return the expression of a factor that this run scored; any other id is refused."""
        row = served.evaluator.scores.get(name)
        if row is None:
            raise McpServerError(
                "This run scored no factor with this id.",
                field="id",
                got=name,
                hint="score_factor first; its answer carries the id.",
                code="unknown_factor",
            )
        return served.evaluator.read(row.text)

    @server.tool(annotations=READ_HINTS)
    @json_tool
    def stress_factor(id: FactorId) -> dict[str, Any]:
        """Begin a job: where a scored factor breaks, in crises, planted regimes, bad data and late fills, on search days."""
        expression = scored(id)
        return served.jobs.begin(
            "stress", {"id": id}, lambda advance: stress_on_search(served.evaluator, [expression], after=advance)
        )

    @server.tool(annotations=READ_HINTS)
    @json_tool
    def measure_decay(id: FactorId) -> dict[str, Any]:
        """Begin a job: a scored factor's RankIC by horizon from 1 to 20 days, by year and by regime, on search days."""
        expression = scored(id)
        return served.jobs.begin("decay", {"id": id}, lambda _: _measure_decay(served.evaluator, expression.text))

    @server.tool(annotations=READ_HINTS)
    @async_tool
    async def get_job(
        job: Annotated[
            str, Field(pattern=r"^j[0-9a-f]{16}$", description="what stress_factor or measure_decay answered with")
        ],
        wait_s: Annotated[float, Field(ge=0, le=MAX_WAIT_S, description="seconds to wait for its end")] = 0.0,
    ) -> dict[str, Any]:
        """Return whether a job waits, runs (and how many steps are done), is done or failed, and its result."""
        return await served.jobs.wait_for(job, wait_s)


def _measure_decay(evaluator: Evaluator, text: str) -> dict[str, Any]:
    sheet = evaluator.score(text)
    return {
        name: sheet[name]
        for name in ("id", "text", "window", "horizon_days", "rank_ic", "t", "decay", "by_year", "by_regime")
    }


def _add_resources(server: ToolServer, served: ServedCaller) -> None:
    @server.resource("alphaloom://rules", mime_type="application/json", name="rules")
    def rules() -> str:
        """Tell the rules by which factors are scored and judged: horizon, costs, limits, the stream of trials."""
        return json.dumps(served.evaluator.settings.model_dump(mode="json"), ensure_ascii=False)

    @server.resource("alphaloom://reports/run", mime_type="application/json", name="report of this run")
    def report() -> str:
        """Tell what this run scored and submitted so far: best factors on search, verdicts in words, what is left to spend."""
        evaluator = served.evaluator
        facts = recall_facts(evaluator, MAX_FACTORS_REPORTED)
        verdicts = {row.factor_id: evaluator.reviews.word(row) for row in evaluator.ledger.verdicts.of(evaluator.run)}
        shared = {name: facts[name] for name in ("factors", "leaders", "hypotheses", "mechanisms")}
        return json.dumps(
            {"run": evaluator.run, **_count_budget_left(evaluator.meter), "verdicts": verdicts, **shared},
            ensure_ascii=False,
        )
