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
from ...ledger import JSON, canonical_json, compute_digest
from ..access import Scope
from ..answers import async_tool, json_tool
from ..arguments import (
    READ_HINTS,
    SPEND_HINTS,
    WRITE_HINTS,
    CallKey,
    FactorId,
    FormulaText,
    ShortFormula,
    VisibleWords,
)
from ..errors import BadArguments, McpServerError
from ..served_caller import CallerEntry, ServedCaller
from ..server import ToolServer
from ..tool_schemas import answer, array, boolean, integer, mapping, string

MAX_EXTRA_BYTES = 20_000
MAX_REFUTER_CHARS = 2_000
MAX_DRAFTS = 512
MAX_WAIT_S = 20.0
"""Maximum seconds that a call waits for a job: clients end calls that take a minute."""
MAX_FACTORS_REPORTED = 50


class Hypothesis(BaseModel):
    """Why the formula should predict returns. For a data-mined formula without a reason add "either_way": true."""

    model_config = ConfigDict(extra="allow")

    id: str = Field(default="", max_length=100, description="Default: derived from the other keys")
    mechanism: VisibleWords = Field(
        min_length=1, max_length=200, description="Cause in a few words", examples=["overreaction"]
    )
    statement: VisibleWords = Field(
        min_length=1,
        max_length=2000,
        description="What you expect, in a sentence",
        examples=["Stocks that fell steadily for a week rebound in the next."],
    )
    direction: Literal[1, -1] = Field(
        description="1: a higher factor value predicts a higher return, -1: a lower one", examples=[1]
    )
    horizon_days: int = Field(
        ge=1,
        le=250,
        description="Trading days until the effect shows; within a factor of 5 of the scored horizon (usually 5)",
        examples=[5],
    )
    fields: list[Annotated[str, Field(max_length=100)]] = Field(
        max_length=20, description="Every field that the formula reads", examples=[["returns"]]
    )

    @model_validator(mode="after")
    def _check_extra_size(self) -> Hypothesis:
        try:
            size = len(canonical_json(self.model_extra or {}).encode())
        except (TypeError, ValueError, RecursionError):
            raise ValueError("its further keys must hold plain JSON, without NaN") from None
        if size > MAX_EXTRA_BYTES:
            raise ValueError(f"its further keys must hold at most {MAX_EXTRA_BYTES} bytes")
        return self

    def record(self) -> dict[str, Any]:
        """Return the JSON form; without an id it gets one from its content, so that equal hypotheses are one."""
        record = self.model_dump()
        return record | {"id": self.id or f"h{compute_digest({**record, 'id': ''})[:16]}"}


EVALUATION_SCOPES = {
    **dict.fromkeys(
        ("score_factor", "choose_drafts", "list_formulas", "get_budget", "stress_factor", "measure_decay", "get_job"),
        Scope.EVAL_RUN,
    ),
    "submit_to_gate": Scope.GATE_SUBMIT,
}
"""The scope that each tool requires."""

JOB_ANSWER = answer(job=string("Job id for get_job"))

EVALUATION_ANSWERS = {
    "score_factor": answer(
        ok=boolean("false: refused, see stage and errors"),
        id=string("Factor id"),
        sheet=mapping(
            "rank_ic: mean daily rank correlation with later returns; t: its t statistic; turnover: share of the book "
            "traded a day; net_sharpe: after costs; decay: rank_ic by days"
        ),
        weaknesses=array("{code, value, message}"),
        stage=string("Check that refused it"),
        errors=array("{message, hint, at: column}"),
        stands=boolean("With refuter: the mechanism holds"),
    ),
    "submit_to_gate": answer(
        verdicts=array(
            "{id, verdict: accepted, awaiting approval, 'proven, not tradable alone', watchlist or rejected, reasons}"
        )
    ),
    "get_budget": answer(evaluations_left=integer("Formulas to score"), trials_left=integer("Gate tests")),
    "choose_drafts": answer(
        forecasts=array("Per text {rank_ic: expected, known: 0 to 1}; null: cannot be scored"),
        chosen=array("0-based positions in texts, best first"),
        turned=array("{place, text: negated}"),
    ),
    "list_formulas": answer(
        leaders=array("{id, rank_ic, beside: marginal rank_ic, kin: similar ids}"),
        unexplored=array("{text, rank_ic: expected}"),
    ),
    "stress_factor": JOB_ANSWER,
    "measure_decay": JOB_ANSWER,
    "get_job": answer(
        status=string("waiting, running, done, failed or cancelled"),
        result=mapping("When done: factors by id {sentence, scenarios}, or decay, by_year, by_regime"),
        error=mapping("{code, message, hint}"),
    ),
}
"""The answer of each tool."""


def build_evaluation_server(served: ServedCaller) -> ToolServer:
    """Return the evaluation server of one run."""
    server = ToolServer(
        "alphaloom-evaluation",
        entry=served.entry,
        scopes=EVALUATION_SCOPES,
        reading=Scope.EVAL_RUN,
        answers=EVALUATION_ANSWERS,
        instructions="Test ideas about stock returns. A factor is a formula whose value ranks stocks each day. "
        "score_factor measures it on past days (the search window) and costs an evaluation. submit_to_gate tests the "
        "best few on days that you never see, and costs a trial. Its verdict has reasons and no figures. stress_factor "
        "and measure_decay start jobs: read their results with get_job.",
    )
    _add_scores(server, served)
    _add_forecasts(server, served)
    _add_jobs(server, served)
    _add_resources(server, served)
    return server


def _add_scores(server: ToolServer, served: ServedCaller) -> None:
    @server.tool(title="Score a formula", annotations=WRITE_HINTS)
    @json_tool
    def score_factor(
        text: FormulaText,
        hypothesis: Hypothesis,
        key: CallKey = "",
        description: Annotated[str, Field(max_length=1_000, description="Your words on the formula")] = "",
        refuter: Annotated[
            str, Field(max_length=MAX_REFUTER_CHARS, description="Rival formula; see above. Usually empty")
        ] = "",
    ) -> dict[str, Any]:
        """Return how a formula or Python factor predicted returns (rank_ic, t, turnover); use it to test an idea.

        Costs one evaluation, none if scored before or refused. Near copies of published formulas are refused. Python
        needs the scope data:read; once run it costs an evaluation even if refused.

        With `refuter` nothing is scored: the hypothesis becomes the mechanism of a factor scored with either_way, once
        and before submit_to_gate. It stands if the factor without what the rival explains keeps its sign, |t| >= 2.
        """
        _require_read_scope(served.entry, text)
        record = hypothesis.record()
        if refuter:
            name = served.evaluator.read(text).id
            return state_mechanism(served.evaluator, name, record, refuter)
        claim = Claim.from_record(record)
        return served.evaluator.propose(
            Proposal(text, claim, key or _derive_key(text, claim.id), replace_invisible(description))
        )

    @server.tool(title="Submit to the acceptance gate", annotations=SPEND_HINTS)
    @json_tool
    def submit_to_gate(
        ids: Annotated[list[FactorId], Field(min_length=1, max_length=20, description="Scored factors")],
        key: Annotated[str, Field(max_length=200, description="Echoed; the same factors are tested once")] = "",
        as_set: Annotated[
            bool, Field(description="Test the weighted combination of 2 to 10 factors, for one trial")
        ] = False,
    ) -> dict[str, Any]:
        """Return whether scored factors are accepted, tested on unseen days; use it for the best few only.

        Each factor that reaches the statistics spends a trial for good. Verdicts have reasons, no figures.
        """
        call = key or _derive_key(ids, as_set)
        if as_set:
            return {
                "key": call,
                "verdicts": [served.evaluator.submissions.submit_set(_check_members(ids)).for_agents()],
            }
        return {"key": call, "verdicts": [verdict.for_agents() for verdict in served.evaluator.submissions.submit(ids)]}

    @server.tool(title="Budget left", annotations=READ_HINTS)
    @json_tool
    def get_budget() -> dict[str, Any]:
        """Return how many evaluations and trials are left; call it before you score or submit."""
        return _count_budget_left(served.evaluator.meter)


def _derive_key(*content: JSON) -> str:
    """Return the key of a call that has none: the same content is the same call."""
    return f"k{compute_digest(list(content))[:16]}"


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

    @server.tool(title="Choose drafts", annotations=READ_HINTS)
    @json_tool
    def choose_drafts(
        texts: Annotated[
            list[ShortFormula],
            Field(min_length=1, max_length=MAX_DRAFTS, description="Unscored formulas"),
        ],
        hypothesis: Hypothesis,
        count: Annotated[int, Field(ge=1, le=64, description="How many to choose")] = 5,
        like: Annotated[FactorId | None, Field(description="Scored factor that they should improve")] = None,
        either: Annotated[
            bool, Field(description="Choose formulas of the opposite direction too, negated in `turned`")
        ] = False,
    ) -> dict[str, Any]:
        """Return forecasts of unscored formulas and which to score; use it if you have more ideas than evaluations."""
        claim = Claim.from_record(hypothesis.record())
        return pick_drafts(served.evaluator, texts, claim, count, like or "", either)

    @server.tool(title="List formulas", annotations=READ_HINTS)
    @json_tool
    def list_formulas(
        which: Annotated[
            Literal["leaders", "unexplored"],
            Field(
                description="leaders: the fewest scored formulas that explain the best results; unexplored: unscored"
            ),
        ],
        limit: Annotated[int, Field(ge=1, le=64, description="Maximum rows")] = 10,
    ) -> dict[str, Any]:
        """Return the best scored formulas, or promising ones that nobody scored yet; use it to decide what to try."""
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
                hint="Score it with score_factor first: its answer has the id.",
                code="unknown_factor",
            )
        return served.evaluator.read(row.text)

    @server.tool(title="Stress a factor", annotations=READ_HINTS)
    @json_tool
    def stress_factor(id: FactorId) -> dict[str, Any]:
        """Start a job that tests a scored factor in crises, bad data and late fills; use it before a submission."""
        expression = scored(id)
        return served.jobs.begin(
            "stress", {"id": id}, lambda advance: stress_on_search(served.evaluator, [expression], after=advance)
        )

    @server.tool(title="Measure decay", annotations=READ_HINTS)
    @json_tool
    def measure_decay(id: FactorId) -> dict[str, Any]:
        """Start a job: rank_ic of a scored factor by horizon (1 to 20 days), year, regime; use it to see how long it lasts."""
        expression = scored(id)
        return served.jobs.begin("decay", {"id": id}, lambda _: _measure_decay(served.evaluator, expression.text))

    @server.tool(title="Job result", annotations=READ_HINTS)
    @async_tool
    async def get_job(
        job: Annotated[
            str,
            Field(
                pattern=r"^j[0-9a-f]{16}$",
                description="Job id from stress_factor or measure_decay",
                examples=["j0123456789abcdef"],
            ),
        ],
        wait_s: Annotated[float, Field(ge=0, le=MAX_WAIT_S, description="Seconds to wait for its end")] = 0.0,
    ) -> dict[str, Any]:
        """Return the status of a job, and its result once done; use it after stress_factor or measure_decay."""
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
