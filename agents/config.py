"""The sections `agents`, `models` and `steer` of a campaign file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from ..factors.describe import find_mention, find_stems
from ..router import ModelSettings, RouterConfig, TierChoice
from ..router.calls import Sensitivity

OFFLINE_MODEL_NAME = "offline/researcher"
OFFLINE_MODEL = ModelSettings(model=OFFLINE_MODEL_NAME, tier="local", place="local")

PATHS = ("seed_library", "hypotheses", "prompts")


class AgentsConfig(BaseModel):
    """How widely and how long the agents search; the evaluation server's budget ends a campaign earlier.

    `min_search_t` is an absolute t statistic of the search window's mean RankIC. Nothing is tested before the search
    ends.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rounds: int = Field(default=8, ge=1, le=10_000, description="rounds of ideas")
    hypotheses: int = Field(default=5, ge=1, le=64, description="hypotheses per round")
    candidates: int = Field(default=5, ge=1, le=64, description="candidates per hypothesis and step")
    drafts: int = Field(
        default=4,
        ge=1,
        le=64,
        description="formulas drafted for each that is scored; "
        "a forecast from earlier scores chooses, at no evaluation",
    )
    redrafts: int = Field(
        default=0,
        ge=0,
        le=8,
        description="times that an agent is asked to change the drafts that are most worth scoring "
        "before any is scored; each is a model call per hypothesis and step",
    )
    steps: int = Field(default=3, ge=0, le=20, description="critiques, each followed by mutation, per hypothesis")
    repairs: int = Field(default=2, ge=0, le=2, description="repairs of a refused formula with the exact error")
    max_concurrency: int = Field(default=4, ge=1, le=256, description="hypotheses whose models are asked at once")
    node_timeout_seconds: float = Field(
        default=900.0,
        gt=0,
        le=86_400,
        description="for all that one agent asks a model in one step, its repairs included",
    )
    node_retries: int = Field(
        default=2,
        ge=0,
        le=10,
        description="further tries of a step whose model was too slow or failed; then its branch ends",
    )
    node_backoff_seconds: float = Field(
        default=5.0, ge=0, le=3_600, description="rest before the first of these tries; doubles with each"
    )
    min_search_t: float = Field(default=3.0, ge=0, description="a factor below this is never sent to the gate")
    set_size: int = Field(
        default=10, ge=0, le=10, description="most members of the combination that is tested first; below 2: none is"
    )
    survey_share: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="share of new hypotheses that are surveys, whose factors are data-mined: they have no mechanism; "
        "the offline researcher makes none where steer.goal or steer.focus matches a mechanism that it knows; "
        "at 0 nothing without a mechanism is tested",
    )
    python: bool = Field(
        default=False, description="let agents write Python factors where the language cannot say the idea"
    )
    recall_limit: int = Field(default=100, ge=1, le=100, description="past factors that the agents are told of")
    memory: bool = Field(
        default=True, description="tell the agents what was tried before; false only to see what that is worth"
    )
    unexplored: int = Field(
        default=24,
        ge=0,
        le=64,
        description="formulas that nobody wrote yet, and that are most worth a score, "
        "of which agents are told each round",
    )
    news: int = Field(
        default=0,
        ge=0,
        le=20,
        description="newest texts of the workspace of which the Idea agent is told each round; 0: none",
    )
    archive: bool = Field(
        default=True,
        description="remember and show the best of every niche of mechanism, horizon and turnover; "
        "false: the strongest alone",
    )
    islands: int = Field(
        default=4,
        ge=1,
        le=64,
        description="lines of search that see each other's formulas every fourth round only; 1: all see all",
    )
    directed: bool = Field(
        default=True,
        description="change formulas as their weaknesses ask for; false only to see what that is worth",
    )
    sensitivity: Sensitivity = Field(
        default="public",
        description="of all that agents ask: public, internal or confidential, "
        "which reaches models of place local, and attested ones",
    )
    jurisdiction: str = Field(
        default="",
        max_length=40,
        description="which all that agents ask may not leave, such as CH; "
        "models of place local and attested ones stand in any",
    )
    tenant: str = Field(
        default="",
        max_length=64,
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$",
        description="on whose behalf agents ask: the caps of that name in models.budget.tenants hold over all runs",
    )
    max_likeness: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="share of words from which two hypotheses of one direction, horizon and fields are one; "
        "1: the same words",
    )


class Models(RouterConfig):
    """The router's settings, with the offline researcher where no model is named."""

    models: dict[str, ModelSettings] = Field(default={"researcher": OFFLINE_MODEL}, min_length=1)
    roles: dict[str, TierChoice] = Field(
        default={"idea": "frontier", "factor": "local", "eval": "frontier", "report": "local"}
    )

    @model_validator(mode="before")
    @classmethod
    def _leave_roles_to_learning(cls, given: Any) -> Any:
        """Fix no role that the file does not fix where the policy is to learn which tier answers it."""
        routing = given.get("routing") if isinstance(given, dict) else None
        policy = routing.get("policy") if isinstance(routing, dict) else getattr(routing, "policy", None)
        return {"roles": {}, **given} if policy == "learned" else given

    def find_unmatched(self, steer: Steer) -> list[str]:
        """Return the person's wishes that match nothing the offline researcher knows; empty if it does not propose."""
        from .offline import describe_unmatched  # the offline researcher imports these settings

        offline = any(model.model == OFFLINE_MODEL_NAME for model in self.models.values())
        return describe_unmatched(steer.record()) if offline else []


def _check_words(text: str) -> str:
    if not find_stems(text):
        raise ValueError("must hold a word that says something, such as momentum")
    return text


SteerWords = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_check_words)]


class Steer(BaseModel):
    """What to look for and where, and the parts that a person brings along. Nothing here can lower a bar of the gate.

    Words are compared by their stems, in mechanisms' names and statements. Relative paths start from the campaign
    file's folder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    goal: str = Field(default="", max_length=2_000, description="what to look for, in plain words")
    avoid: tuple[SteerWords, ...] = Field(
        default=(), max_length=50, description="mechanisms, by name or by words, that are not to be proposed"
    )
    focus: tuple[SteerWords, ...] = Field(
        default=(), max_length=50, description="mechanisms, by name or by words, that come before any other"
    )
    fields: tuple[str, ...] = Field(
        default=(), max_length=200, description="fields that formulas may read; none named: all of the panel"
    )

    seed_library: Path | None = Field(
        default=None, description="formulas that are scored first: a file of `library export`, or a list"
    )
    hypotheses: Path | None = Field(
        default=None, description="YAML of hypotheses that are worked on before the agents'"
    )
    prompts: Path | None = Field(default=None, description="folder with idea.md, factor.md or eval.md of one's own")
    agent: str = Field(
        default="",
        max_length=500,
        description="an agent of one's own: module:function or file.py:function",
    )
    agent_hypotheses: int = Field(default=2, ge=1, le=64, description="hypotheses of a round that are that agent's")
    agent_timeout_s: float = Field(default=60.0, gt=0, le=86_400, description="seconds that it may think")

    @model_validator(mode="after")
    def _check_avoided(self) -> Steer:
        both = [entry for entry in self.focus if find_mention((entry,), self.avoid)]
        if both:
            raise ValueError(f"focus and avoid both speak of {', '.join(both)}: leave it in one of them")
        return self

    @field_validator("agent")
    @classmethod
    def _check_function_name(cls, text: str) -> str:
        where, _, function = text.rpartition(":")
        if text and not (where.strip() and function.isidentifier()):
            raise ValueError("must be module:function or file.py:function")
        return text

    def record(self) -> dict[str, Any]:
        """Return the settings that the agents see, in a fixed order; empty ones are left out."""
        settings = {
            "goal": self.goal,
            "avoid": list(self.avoid),
            "focus": list(self.focus),
            "fields": list(self.fields),
        }
        return {name: value for name, value in settings.items() if value}

    def find_avoided(self, mechanism: str, statement: str) -> str:
        """Return the first entry of `avoid` that a hypothesis mentions, or an empty string."""
        return find_mention((mechanism, statement), self.avoid)

    def beside(self, folder: Path) -> Steer:
        """Return the settings with relative paths resolved against a folder."""
        paths = {name: (folder / path).absolute() for name in PATHS if (path := getattr(self, name))}
        where, _, function = self.agent.rpartition(":")
        agent = {"agent": f"{(folder / where).absolute()}:{function}"} if where.endswith(".py") else {}
        return self.model_copy(update={**paths, **agent})
