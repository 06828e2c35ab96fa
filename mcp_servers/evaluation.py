"""The evaluation server: scores on the search window, and verdicts without numbers from any other."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.types import ToolAnnotations
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ..evidence import Claim, Evaluator, Proposal, drafting
from ..factors.python import LONGEST_CODE
from ..factors.words import visible
from ..ledger import canonical_json
from .access import Scope
from .answers import tool
from .entry import Entry
from .market import READ_ONLY
from .server import ToolServer

RECORDS = ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
FactorId = Annotated[str, Field(pattern=r"^f[0-9a-f]{16}$", description="the id that score_factor answered with")]
Key = Annotated[str, Field(min_length=1, max_length=200, description="names this call; the same key is the same call")]
MOST_EXTRA = 20_000
MOST_DRAFTS = 512
Draft = Annotated[str, Field(min_length=1, max_length=LONGEST_CODE)]


Words = Annotated[str, AfterValidator(visible)]
"""Words that people and models read later: what nobody can see in them is a blank."""


class Hypothesis(BaseModel):
    """What the formula is meant to test."""

    model_config = ConfigDict(extra="allow")

    id: str = Field(min_length=1, max_length=100)
    mechanism: Words = Field(min_length=1, max_length=200)
    statement: Words = Field(min_length=1, max_length=2000)
    direction: Literal[1, -1] = Field(description="1: a higher factor means a higher return")
    horizon_days: int = Field(ge=1, le=250)
    fields: list[Annotated[str, Field(max_length=100)]] = Field(max_length=20)

    @model_validator(mode="after")
    def _can_be_kept(self) -> Hypothesis:
        try:
            size = len(canonical_json(self.model_extra or {}).encode())
        except (TypeError, ValueError, RecursionError):
            raise ValueError("its further keys must hold plain JSON, without NaN") from None
        if size > MOST_EXTRA:
            raise ValueError(f"its further keys must hold at most {MOST_EXTRA} bytes")
        return self


SCOPES = {
    **dict.fromkeys(("score_factor", "choose_drafts", "leaders", "unexplored", "budget"), Scope.EVAL_RUN),
    **dict.fromkeys(("submit_to_gate", "submit_set"), Scope.GATE_SUBMIT),
}
"""What each tool asks of a caller."""


def evaluation_server(evaluator: Evaluator, entry: Entry | None = None) -> MCPServer:
    """Return the evaluation server of one run."""
    said = "Score factors on search; submit few of them to the gate."
    server = ToolServer("alphaloom-evaluation", instructions=said, entry=entry, scopes=SCOPES)

    @server.tool(annotations=RECORDS)
    @tool
    def score_factor(
        text: Annotated[str, Field(min_length=1, max_length=LONGEST_CODE)],
        hypothesis: Hypothesis,
        key: Key,
        description: Annotated[str, Field(max_length=1_000, description="what you say of the formula")] = "",
    ) -> dict[str, Any]:
        """Check, score and record a formula or Python factor on the search window; a refusal says which step and why."""
        return evaluator.propose(Proposal(text, Claim.from_record(hypothesis.model_dump()), key, visible(description)))

    @server.tool(annotations=RECORDS)
    @tool
    def submit_to_gate(ids: Annotated[list[FactorId], Field(min_length=1, max_length=20)], key: Key) -> dict[str, Any]:
        """Put scored factors before the acceptance gate; each that reaches statistics spends a trial for good."""
        return {"key": key, "verdicts": [verdict.for_agents() for verdict in evaluator.submit(ids)]}

    @server.tool(annotations=RECORDS)
    @tool
    def submit_set(members: Annotated[list[FactorId], Field(min_length=2, max_length=10)], key: Key) -> dict[str, Any]:
        """Put the sum of the signed ranks of scored factors before the gate as one factor: one trial."""
        return {"key": key, "verdict": evaluator.submit_set(members).for_agents()}

    @server.tool(annotations=READ_ONLY)
    @tool
    def budget() -> dict[str, Any]:
        """Return how many evaluations and trials are left in this campaign."""
        return {"evaluations_left": evaluator.evaluations_left(), "trials_left": evaluator.trials_left()}

    _add_forecasts(server, evaluator)
    return server


def _add_forecasts(server: ToolServer, evaluator: Evaluator) -> None:
    """Add the tools that say what earlier scores let expect; see `evidence.drafting`."""

    @server.tool(annotations=READ_ONLY)
    @tool
    def choose_drafts(
        texts: Annotated[list[Draft], Field(min_length=1, max_length=MOST_DRAFTS)],
        hypothesis: Hypothesis,
        count: Annotated[int, Field(ge=1, le=64, description="how many to choose")] = 5,
        like: Annotated[FactorId | None, Field(description="a scored factor that the drafts are to improve")] = None,
        either: Annotated[
            bool, Field(description="take what promises the opposite direction too, as `turned`")
        ] = False,
    ) -> dict[str, Any]:
        """Say of formulas that were not scored what earlier scores let expect, and which are most worth an evaluation."""
        claim = Claim.from_record(hypothesis.model_dump())
        return drafting.choose_drafts(evaluator, texts, claim, count, like or "", either)

    @server.tool(annotations=READ_ONLY)
    @tool
    def leaders(
        limit: Annotated[int, Field(ge=1, le=64, description="how many at most")] = 10,
    ) -> dict[str, Any]:
        """Return the scored formulas that between them say what was found on search, what each adds to the others first."""
        return {"leaders": [leader.record() for leader in drafting.leaders(evaluator, limit)]}

    @server.tool(annotations=READ_ONLY)
    @tool
    def unexplored(
        limit: Annotated[int, Field(ge=1, le=64, description="how many at most")] = 24,
    ) -> dict[str, Any]:
        """Return formulas that nobody wrote yet: in turn the most promising by earlier scores, and the most telling of all.

        While the search is `surveying`, its first part where it is long, only the most telling.
        """
        return drafting.unexplored(evaluator, limit)
