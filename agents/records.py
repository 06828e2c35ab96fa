"""Records of tools' answers and of what nodes pass on: attempts, hypotheses, budgets, draft rankings, marks, work.

Tools and the journal exchange JSON. Each record is parsed once, where its answer arrives (`parse`, `read_...`); the
journal, the checkpoints and the prompts keep the JSON as it came.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypedDict

from ..factors.describe import natural_sort_key
from .search_context import AgentJournal, Json

MAX_BRANCHES = 1_000
OPERATOR_LIST_PLACE = ("language", "operators")
"""Kind and key under which the journal keeps the prompts' list of operators."""
UNKNOWN_HORIZON_DAYS = 5
"""Horizon of a hypothesis that states none, in trading days."""


class DraftBody(TypedDict, total=False):
    """One proposed formula as replies and the journal hold it; `key` is added when it is chosen for scoring.

    `parent_t` and `where` are the t and the first weakness of its parent, as the prompt showed them. `rank_ic` and
    `known` are a forecast and occur only in drafts that an agent is asked to change.
    """

    key: str
    text: str
    rationale: str
    intent: str
    parent: str
    parent_t: float
    where: str
    rank_ic: float | None
    known: float | None


@dataclass(frozen=True)
class SearchSheet:
    """Figures of one formula on the search window, as the evaluation server gave them; None where one is missing.

    Attributes
    ----------
    rank_ic : float or None
        Mean daily rank correlation of formula and label, -1 to 1.
    t_stat : float or None
        Newey-West t of `rank_ic`.
    turnover : float or None
        One-way traded notional a day over gross, 0 to 1.
    net_sharpe : float or None
        Annualised Sharpe ratio after costs.
    coverage : float or None
        Share of cells with a value, 0 to 1.
    decay : mapping
        RankIC by horizon in trading days (as text).
    by_year : mapping
        RankIC by calendar year (as text).
    quantile_returns : tuple
        Mean label of each quantile, lowest first, as fractions.
    """

    rank_ic: float | None = None
    t_stat: float | None = None
    turnover: float | None = None
    net_sharpe: float | None = None
    coverage: float | None = None
    decay: Mapping[str, float | None] = field(default_factory=dict)
    by_year: Mapping[str, float | None] = field(default_factory=dict)
    quantile_returns: tuple[float | None, ...] = ()

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> SearchSheet:
        """Return the figures of a score; numbers stay as they came, since prompts quote them."""
        return cls(
            rank_ic=body.get("rank_ic"),
            t_stat=body.get("t"),
            turnover=body.get("turnover"),
            net_sharpe=body.get("net_sharpe"),
            coverage=body.get("coverage"),
            decay=body.get("decay", {}),
            by_year=body.get("by_year", {}),
            quantile_returns=tuple(body.get("quantile_returns", ())),
        )

    @property
    def t_or_zero(self) -> float:
        """The t statistic; 0 where it is missing or not finite."""
        return finite_or_none(self.t_stat) or 0.0


class SheetWeakness(NamedTuple):
    """One weakness that the evaluation server found in a scored formula."""

    code: str
    message: str


@dataclass(frozen=True)
class AttemptRefusal:
    """A refusal by the evaluation server: the stage, and the errors as a prompt quotes them."""

    stage: str = ""
    errors: tuple[Json, ...] = ()


@dataclass(frozen=True)
class AttemptDescent:
    """A child's statement about its parent: the parent's t on search (signed), and its first weakness."""

    parent_t: float
    where: str


@dataclass(frozen=True)
class FormulaAttempt:
    """One proposed formula and its outcome: a refusal, or an id with the figures of the search window.

    Attributes
    ----------
    key : str
        Names the attempt: branch, step, number and repair.
    id : str
        The factor's id; empty if it was refused.
    refusal : AttemptRefusal or None
        None if it was scored.
    sheet : SearchSheet
        Empty if it was refused.
    intent : str
        The change that its author says it is.
    descent : AttemptDescent or None
        None if it names no parent that its prompt showed.
    data_mined : bool
        Whether it no longer measures its hypothesis' mechanism, and was scored without one.
    """

    key: str
    text: str
    id: str = ""
    refusal: AttemptRefusal | None = None
    sheet: SearchSheet = SearchSheet()
    weaknesses: tuple[SheetWeakness, ...] = ()
    intent: str = ""
    descent: AttemptDescent | None = None
    data_mined: bool = False

    @classmethod
    def parse(cls, key: str, body: Mapping[str, Any]) -> FormulaAttempt:
        """Return the attempt from its record in the journal."""
        text, intent = str(body.get("text", "")), str(body.get("intent", ""))
        if not body.get("ok"):
            errors = AttemptRefusal(str(body.get("stage", "")), tuple(body.get("errors", ())))
            return cls(key, text, refusal=errors, intent=intent)
        return cls(
            key,
            text,
            str(body.get("id", "")),
            sheet=SearchSheet.parse(body.get("sheet", {})),
            weaknesses=tuple(SheetWeakness(row["code"], row.get("message", "")) for row in body.get("weaknesses", ())),
            intent=intent,
            descent=AttemptDescent(body["parent_t"], body["where"]) if "parent" in body else None,
            data_mined=bool(body.get("data_mined")),
        )


def read_attempt(journal: AgentJournal, key: str) -> FormulaAttempt:
    """Return an attempt; one that is not on record counts as refused, without a text."""
    return FormulaAttempt.parse(key, journal.read("score", key) or {})


DATA_MINED = "data_mined"
"""The mechanism that is recorded of a formula without one, and the end of the id of its hypothesis."""


@dataclass(frozen=True)
class BranchHypothesis:
    """A market mechanism that formulas are to test.

    Attributes
    ----------
    body : mapping
        The hypothesis as it was proposed; prompts quote it, and the journal keeps it.
    id : str
        The key of its branch; empty before it has one.
    direction : int
        1: a higher factor means a higher return; -1: a lower one.
    horizon_days : int
        Trading days.
    fields : tuple of str
        Fields of the panel that it names.
    either_way : bool
        Whether it takes either direction, as a survey does.
    succeeds : str
        The factor that it is to replace; empty for none.
    source : str
        Its origin, such as "own agent"; empty for the Idea agent.
    candidates : tuple
        Formulas that came with it.
    """

    body: Json
    id: str = ""
    mechanism: str = ""
    statement: str = ""
    direction: int = 1
    horizon_days: int = UNKNOWN_HORIZON_DAYS
    fields: tuple[str, ...] = ()
    either_way: bool = False
    succeeds: str = ""
    source: str = ""
    candidates: tuple[DraftBody, ...] = ()

    @classmethod
    def parse(cls, body: Json) -> BranchHypothesis:
        """Return the hypothesis of a reply, of a person, or of the journal."""
        words = {name: str(body.get(name) or "") for name in ("id", "mechanism", "statement", "succeeds", "source")}
        return cls(
            body,
            **words,
            direction=int(body.get("direction", 1)),
            horizon_days=int(body.get("horizon_days", UNKNOWN_HORIZON_DAYS)),
            fields=tuple(body.get("fields", ())),
            either_way=bool(body.get("either_way")),
            candidates=tuple(body.get("candidates", ())),
        )

    def select(self, names: Iterable[str]) -> Json:
        """Return some parts of it as they were proposed; missing ones are left out."""
        return {name: self.body[name] for name in names if name in self.body}

    def mine(self) -> BranchHypothesis:
        """Return the hypothesis of a formula that drifted off its mechanism: it is a survey."""
        statement = f"Changed from a formula of {self.mechanism}, which it no longer measures."
        words = {"id": f"{self.id}/{DATA_MINED}", "mechanism": DATA_MINED, "statement": statement}
        return BranchHypothesis.parse({**self.body, **words, "either_way": True})


def read_hypothesis(journal: AgentJournal, branch: str) -> BranchHypothesis:
    """Return the hypothesis of a branch; an empty one if there is none."""
    return BranchHypothesis.parse(journal.read("hypothesis", branch) or {})


def read_mark_hypothesis(journal: AgentJournal, mark: Mark) -> BranchHypothesis:
    """Return the hypothesis of a scored formula: its branch's, as a survey where the formula drifted off it."""
    hypothesis = read_hypothesis(journal, mark.branch)
    return hypothesis.mine() if read_attempt(journal, mark.key).data_mined else hypothesis


@dataclass(frozen=True)
class BudgetLeft:
    """The remaining budget of a campaign: evaluations on search, and trials (tests on selection days)."""

    evaluations: int
    trials: int

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> BudgetLeft:
        """Return the budget from the answer of `evaluation.get_budget`."""
        return cls(int(body["evaluations_left"]), int(body["trials_left"]))


@dataclass(frozen=True)
class DraftForecast:
    """A forecast for a draft from earlier scores.

    Attributes
    ----------
    rank_ic : float or None
        Incremental RankIC beside the leaders, -1 to 1.
    known : float or None
        Share of the variance of its ranks that scored formulas explain, 0 to 1.
    """

    rank_ic: float | None = None
    known: float | None = None


@dataclass(frozen=True)
class DraftRanking:
    """Which drafts are most worth an evaluation.

    Attributes
    ----------
    chosen : tuple of int
        Places in the list of drafts, the most worth scoring first.
    turned : mapping
        By place: the text with the opposite sign, for drafts whose forecast has the opposite direction.
    forecasts : tuple of DraftForecast
        One for each place.
    """

    chosen: tuple[int, ...]
    turned: Mapping[int, str]
    forecasts: tuple[DraftForecast, ...]

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> DraftRanking:
        """Return the ranking from the answer of `evaluation.choose_drafts`; a missing forecast becomes an empty one."""
        rows = [row or {} for row in body["forecasts"]]
        forecasts = tuple(DraftForecast(row.get("beside"), row.get("known")) for row in rows)
        return cls(tuple(body["chosen"]), {row["place"]: row["text"] for row in body["turned"]}, forecasts)


@dataclass(frozen=True)
class BranchProposal:
    """The proposal of one branch at one step.

    Attributes
    ----------
    items : tuple of DraftBody
        The drafts to score.
    ended : str
        Why the budget ended; empty if it did not.
    given_up : bool
        Whether the branch failed.
    """

    items: tuple[DraftBody, ...] = ()
    ended: str = ""
    given_up: bool = False

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> BranchProposal:
        """Return the proposal from its record in the journal."""
        return cls(tuple(body.get("items", ())), str(body.get("ended", "")), bool(body.get("given_up")))


def read_proposal(journal: AgentJournal, key: str, kind: str = "proposal") -> BranchProposal:
    """Return a branch's proposal (`kind` "drafts": before the choice); without items if none is on record."""
    return BranchProposal.parse(journal.read(kind, key) or {})


@dataclass(frozen=True)
class RoundMemory:
    """What was known when a round began, as the tools returned it; stored, so that a resumed round reads the same.

    Prompts quote its rows as they came.

    Attributes
    ----------
    fields, groups : tuple of str
        Names that formulas may use.
    described_fields : list
        Fields with their meaning, or their names alone.
    factors, leaders, unexplored : list
        Scored formulas, the best first; the few that together explain the results; promising formulas that are not
        scored yet.
    hypotheses, mechanisms, refusals : list
        Past hypotheses and mechanisms, and the number of refusals by reason.
    library, decaying : list
        Accepted factors, and those of them that decay.
    news, documents : list
        Texts from outside, and passages of the person's documents.
    spent_share : float
        Share of the evaluations that is spent, 0 to 1.
    surveying : bool
        Whether the search is still exploring.
    """

    fields: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    described_fields: list[Any] = field(default_factory=list)
    factors: list[Json] = field(default_factory=list)
    leaders: list[Json] = field(default_factory=list)
    unexplored: list[Json] = field(default_factory=list)
    hypotheses: list[Json] = field(default_factory=list)
    mechanisms: list[Json] = field(default_factory=list)
    refusals: list[Json] = field(default_factory=list)
    library: list[Json] = field(default_factory=list)
    decaying: list[Json] = field(default_factory=list)
    news: list[Json] = field(default_factory=list)
    documents: list[Json] = field(default_factory=list)
    spent_share: float = 0.0
    surveying: bool = False

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> RoundMemory:
        """Return the memory from the tools' answers, as the journal keeps them together."""
        rows = {
            name: body.get(name, [])
            for name in (
                "factors", "leaders", "unexplored", "hypotheses", "mechanisms", "refusals",
                "library", "decaying", "news", "documents",
            )
        }  # fmt: skip  # a table
        return cls(
            tuple(list_names(body.get("fields", []))),
            tuple(list_names(body.get("groups", []))),
            body.get("described") or body.get("fields", []),
            **rows,
            spent_share=body.get("spent", 0.0),
            surveying=bool(body.get("surveying")),
        )

    def forget(self) -> RoundMemory:
        """Return it without past formulas and hypotheses, for a campaign whose agents have no memory."""
        return replace(
            self, factors=[], leaders=[], unexplored=[], hypotheses=[], mechanisms=[], refusals=[], surveying=False
        )


def list_names(listed: Iterable[object]) -> list[str]:
    """Return names from a list of names or of objects with a name."""
    return [item if isinstance(item, str) else str(item["name"]) for item in listed if isinstance(item, (str, dict))]


def read_memory(journal: AgentJournal, round_key: str) -> RoundMemory:
    """Return what was known when a round began; an empty memory if the round has not begun."""
    return RoundMemory.parse(journal.read("recall", round_key) or {})


def describe_language(journal: AgentJournal, memory: RoundMemory) -> Json:
    """Return the prompts' description of the language: its operators, and the fields and groups of this market."""
    operators = (journal.read(*OPERATOR_LIST_PLACE) or {}).get("operators", [])
    return {"operators": operators, "fields": list(memory.fields), "groups": list(memory.groups)}


class Mark(NamedTuple):
    """A scored formula in the search.

    Attributes
    ----------
    t : float
        t of its search RankIC.
    id, key : str
        The factor, and the attempt that found it.
    niche : str
        Its cell in the archive.
    """

    t: float
    id: str
    key: str
    niche: str = ""

    @property
    def branch(self) -> str:
        """The key of its hypothesis."""
        return "/".join(self.key.split("/")[:2])


@dataclass(frozen=True)
class Work:
    """One branch's piece of work in one super-step; all its inputs were recorded before the step began.

    Attributes
    ----------
    count : int
        Formulas that may be scored.
    best, elite : tuple of Mark
        The strongest of the branch, and those of other branches that it may see.
    refused : tuple of str
        Keys of the attempts that are to be repaired.
    """

    branch: str
    step: int
    attempt: int
    count: int
    best: tuple[Mark, ...] = ()
    elite: tuple[Mark, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of the proposal: branch, step and attempt."""
        return f"{self.branch}/s{self.step}/a{self.attempt}"

    @property
    def round_key(self) -> str:
        """The key of the round."""
        return self.branch.split("/")[0]

    def attempts(self) -> list[str]:
        """Return the keys of the formulas to come; a repaired formula keeps its number."""
        if self.refused:
            return [f"{key.rpartition('/')[0]}/a{self.attempt}" for key in self.refused]
        return [f"{self.branch}/s{self.step}/c{number}/a0" for number in range(self.count)]


def finite_or_none(value: object) -> float | None:
    """Return a number as a float; None if it is missing or not finite."""
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return None


def round_for_prompt(value: Any) -> Any:
    """Return plain data with numbers rounded to three significant digits, and None for those that are not finite.

    A RankIC is known to a tenth of itself at best; more digits carry no information, and each is paid for.
    """
    if isinstance(value, dict):
        return {name: round_for_prompt(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [round_for_prompt(item) for item in value]
    if isinstance(value, float):
        return finite_or_none(float(f"{value:.3g}"))
    return value


def rank_marks(marks: Iterable[Mark], limit: int) -> list[Mark]:
    """Return the strongest by |t|, one per id; ties by id, so that the order of arrival has no effect."""
    ordered = sorted(marks, key=lambda mark: (-abs(mark.t), mark.id, natural_sort_key(mark.key)))
    first: dict[str, Mark] = {}
    for mark in ordered:
        first.setdefault(mark.id, mark)
    return list(first.values())[:limit]


def iterate_branches(journal: AgentJournal, round_number: int, letters: str = "ha") -> Iterator[str]:
    """Yield the keys of a round's branches: of new hypotheses (`h`), then of those that a person sent back (`a`)."""
    for letter in letters:
        for index in range(MAX_BRANCHES):
            branch = f"r{round_number:02d}/{letter}{index:02d}"
            if journal.read("hypothesis", branch) is None:
                break
            yield branch
