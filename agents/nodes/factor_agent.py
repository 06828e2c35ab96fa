"""The Factor agent: turns a hypothesis into formulas, has them scored, and repairs refused ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from ...factors import FactorError, parse
from ...factors.decoding import decoding_grammar
from ...factors.python import is_python
from ..errors import NoUsableReply
from ..memory.archive import place_in_niches
from ..memory.diversity import find_cited_ids
from ..memory.operator_outcomes import add_descent, describe_operators
from ..offline import fits_mechanism
from ..own_parts import Seed
from ..questions import Question, ask_model, is_fruitless
from ..records import (
    DATA_MINED,
    AttemptRefusal,
    BranchHypothesis,
    BranchProposal,
    DraftBody,
    DraftRanking,
    FormulaAttempt,
    Mark,
    RoundMemory,
    Work,
    describe_language,
    read_attempt,
    read_hypothesis,
    read_memory,
    read_proposal,
)
from ..schemas import Candidates
from ..search_context import Json, SearchContext, Toolbox
from . import review
from .idea_agent import recall_memory

FACTOR_AGENT_TOOLS = (
    "factors.check_factor",
    "factors.find_similar",
    "evaluation.choose_drafts",
    "evaluation.score_factor",
)

GRAMMAR_WINDOWS = (1, 2, 3, 4, 5, 8, 10, 15, 20, 30, 40, 60, 90, 120, 180, 250)
"""Windows in rows that a grammar allows a model to write."""

MAX_ELITE_SHOWN = 12

MAX_TRIED_SHOWN = 60

MAX_SCORED_SHOWN, STRIDE = 60, 30

HYPOTHESIS_KEYS = ("id", "mechanism", "statement", "direction", "horizon_days", "fields", "refuted_by")
CLAIM_KEYS = (*HYPOTHESIS_KEYS, "succeeds", "source")
"""Parts of a hypothesis that the evaluation server is sent; a survey is marked as one beside them."""

MAX_DRAFTS = 512

MIN_DRAFTS_HANDED_BACK = 16
"""Least number of drafts that an agent is shown for a change: those most worth scoring."""

AskRevision = Callable[[int, Sequence[DraftBody]], Awaitable[list[DraftBody]]]
"""Asks for further drafts; takes the number of the revision and the drafts with their forecasts."""

SEEDS_PER_STEP = 20
"""Seeds that one super-step scores; the search can be halted between two of them."""

SEED_ROUND = "r00"

MAX_HYPOTHESIS_FIELDS = 20


async def draft_formulas(search: SearchContext, work: Work) -> Json:
    """Return the agent's drafts for one branch and step, stored in the journal: items of text, intent and descent.

    Raises
    ------
    NoUsableReply
        No reply could be used, and nothing was drafted in this search before.
    """

    async def ask() -> Json:
        formulas = _list_own_formulas(search, work)
        if formulas:
            return {"items": formulas}
        context = _build_context(search, work)
        intent = "repair" if work.refused else "formulas"
        more = (*(("python",) if search.config.python else ()), *review.list_review_pages(search, work.round_key))
        question = Question(
            "factor", intent, work.key, Candidates, context, more, refused=work.attempt,
            items=context["request"]["count"], texts=_make_grammar_texts(search, context),
            check=_make_check(search, work, _count_wanted(work, context)),
        )  # fmt: skip  # a table
        reply = await ask_model(search, question)
        if (
            "failed" in reply
            and is_fruitless(search, review.parse_round(work.round_key))
            and not (work.step or work.attempt)
        ):
            raise NoUsableReply(f"factor/{work.key}", reply["failed"])  # the barrier gives it up unless all fail
        drafts, ended = await _redraft(search, work, question, reply.pop("candidates", []))
        parents = _list_parents(context)
        return {**reply, **ended, "items": [add_descent(draft, parents) for draft in drafts]}

    return await search.record_once("drafts", work.key, ask)


async def choose_formulas(search: SearchContext, work: Work) -> BranchProposal:
    """Return the drafts of one branch and step that are scored, stored in the journal, each with a key of its own.

    They are chosen when it is their turn, by all earlier scores, including those of the round's earlier branches.
    """

    async def choose() -> Json:
        reply = search.journal.read("drafts", work.key) or {}
        drafts = BranchProposal.parse(reply).items
        best = await _make_drafting(search, work).choose_best(drafts, work.count)
        return {**reply, "items": [{"key": key, **draft} for key, draft in zip(work.attempts(), best, strict=False)]}

    return BranchProposal.parse(await search.record_once("proposal", work.key, choose))


def _count_wanted(work: Work, context: Json) -> int:
    asked = int(context["request"]["count"])
    return asked if work.refused else min(asked, work.count)


def _make_check(
    search: SearchContext, work: Work, count: int, shown: AbstractSet[str] = frozenset()
) -> Callable[[Candidates], Awaitable[str]]:
    """Return what says why a small model's drafts are of no use: fewer than asked for are.

    Of use is a formula that is new, none of those `shown`, and neither a copy nor refused; and one program, if code is
    allowed.
    """
    drafting, python = _make_drafting(search, work), search.config.python

    async def check(reply: Candidates) -> str:
        rows: list[DraftBody] = reply.model_dump(mode="json")["candidates"]
        found = await drafting.count_useful([row for row in rows if row["text"] not in shown], count, python=python)
        return "" if found >= count else f"{found} of {count} formulas are of use"

    return check


def _make_grammar_texts(search: SearchContext, context: Json) -> Callable[[], Mapping[str, str]] | None:
    """Return a function that writes the formulas' grammar; None if Python code is allowed, which no grammar covers."""
    spoken = context["language"]
    if search.config.python or not spoken["fields"]:
        return None
    return lambda: {"Candidate.text": _write_grammar(tuple(spoken["fields"]), tuple(spoken["groups"]))}


@cache
def _write_grammar(fields: tuple[str, ...], groups: tuple[str, ...]) -> str:
    return decoding_grammar(fields, groups, GRAMMAR_WINDOWS)


def _make_drafting(search: SearchContext, work: Work) -> Drafting:
    hypothesis = read_hypothesis(search.journal, work.branch)
    memory = read_memory(search.journal, work.round_key)
    parents = [work.best[0].id] if work.best else [str(row["id"]) for row in _list_cited_rows(memory, hypothesis)]
    box = search.tools.select("factor", FACTOR_AGENT_TOOLS)
    return Drafting(box, _make_claim(hypothesis), (*parents, "")[0], hypothesis.either_way)


def _make_claim(hypothesis: BranchHypothesis) -> Json:
    """Return what the evaluation server is sent of a hypothesis; a survey claims no mechanism, and says so."""
    return hypothesis.select(CLAIM_KEYS) | ({"either_way": True} if hypothesis.either_way else {})


async def _redraft(
    search: SearchContext, work: Work, question: Question, drafts: Sequence[DraftBody]
) -> tuple[list[DraftBody], Json]:
    """Return the drafts after the agent revised the most promising, and the reason if the budget ended meanwhile."""
    ended: Json = {}

    async def again(number: int, best: Sequence[DraftBody]) -> list[DraftBody]:
        names = ("text", "rank_ic", "known", "intent", "parent")
        rows: list[Json] = [{**draft} for draft in best]
        shown = [{name: row[name] for name in names if row.get(name, "") != ""} for row in rows]
        context = {**question.context, "branch": {**question.context["branch"], "drafts": shown}}
        check = _make_check(search, work, 1, frozenset(draft["text"] for draft in best))
        revision = replace(question, key=f"{question.key}/d{number}", context=context, check=check)
        reply = await ask_model(search, revision)
        ended.update({"ended": reply["ended"]} if reply.get("ended") else {})
        return list(reply.get("candidates", []))

    times = 0 if work.refused else search.config.redrafts
    return await _make_drafting(search, work).redraft(list(drafts), work.count, times, again), ended


async def score_formula(search: SearchContext, branch: str, item: DraftBody) -> FormulaAttempt:
    """Return the evaluation server's answer for one formula; the server is asked once per key."""
    box = search.tools.select("factor", FACTOR_AGENT_TOOLS)
    hypothesis = read_hypothesis(search.journal, branch)
    drifted = _has_drifted(search, hypothesis, item)
    arguments = {
        "text": item["text"],
        "hypothesis": _make_claim(hypothesis.mine() if drifted else hypothesis),
        "key": item["key"],
        "description": str(item.get("rationale", "")),
    }

    async def call() -> Json:
        reply = await box.call("evaluation.score_factor", arguments)
        # `new` may differ after a restart, so nothing may depend on it.
        answer = {name: value for name, value in reply.items() if name != "new"}
        body: Json = {**item}
        stated: Json = {name: body[name] for name in ("text", "intent", "parent", "parent_t", "where") if name in body}
        return {**stated, **answer, "branch": branch, **({"data_mined": True} if drifted else {})}

    return FormulaAttempt.parse(item["key"], await search.record_once("score", item["key"], call))


def _has_drifted(search: SearchContext, hypothesis: BranchHypothesis, item: DraftBody) -> bool:
    """Return whether a changed formula no longer measures the mechanism of its hypothesis.

    It is judged where the mechanism is one of those with skeletons. A fresh formula is its author's own measure.
    """
    changed = bool(item.get("parent") or find_cited_ids(hypothesis)) or item.get("intent") == DATA_MINED
    if hypothesis.either_way or not changed:
        return False
    memory = read_memory(search.journal, hypothesis.id.split("/")[0])
    name, direction = hypothesis.mechanism, hypothesis.direction
    return fits_mechanism(item["text"], name, direction, memory.fields, memory.groups) is False


def describe_attempt(search: SearchContext, key: str) -> Json:
    """Return a prompt's row of one attempt: the formula's figures, or the stage that refused it."""
    attempt = read_attempt(search.journal, key)
    if attempt.refusal is not None:
        return {"text": attempt.text, "stage": attempt.refusal.stage}
    return {
        "id": attempt.id,
        "text": attempt.text,
        "t": attempt.sheet.t_or_zero,
        "rank_ic": attempt.sheet.rank_ic,
        "turnover": attempt.sheet.turnover,
        "weaknesses": [weakness.code for weakness in attempt.weaknesses],
    }


def _build_context(search: SearchContext, work: Work) -> Json:
    """Return the context, ordered so that questions share their beginning, which servers cache.

    First comes what all branches of a round share, then the branch's own part, to which later steps append, then the
    question itself.
    """
    memory, hypothesis = read_memory(search.journal, work.round_key), read_hypothesis(search.journal, work.branch)
    past = memory if search.config.memory else memory.forget()
    outcomes = describe_operators(search, review.parse_round(work.round_key))
    return {
        "language": describe_language(search.journal, memory),
        "market": {"horizon_days": search.horizon_days},
        **({"steer": search.steer.record()} if search.steer.record() else {}),
        "record": {
            "library": memory.library,
            **({"operators": outcomes} if outcomes else {}),
            **review.read_reviews(search, review.parse_round(work.round_key)),
            "unexplored": past.unexplored,
            "tried": _list_tried_texts(past, hypothesis),
            "elite": [describe_attempt(search, mark.key) for mark in work.elite[:MAX_ELITE_SHOWN]],
        },
        "hypothesis": {name: value for name, value in hypothesis.body.items() if name != "candidates"},
        "branch": {
            "cited": _list_cited_rows(past, hypothesis),
            **_list_scored_rows(search, work),
            "critique": _describe_critique(search, work),
            "refused": [_describe_refusal(search, key) for key in work.refused],
        },
        "request": {"count": _count_drafts(search, work), "step": work.step, **_list_flags(search)},
        "task": "repair" if work.refused else "factor",
    }


def _list_flags(search: SearchContext) -> Json:
    """Return the flags of a request: Python is allowed; directed changes are not wanted."""
    return ({"python": True} if search.config.python else {}) | ({} if search.config.directed else {"directed": False})


def _list_parents(context: Json) -> list[Json]:
    """Return the formulas in a context that may be parents."""
    branch = context["branch"]
    rows = [*branch["scored"], *branch["best"], *context["record"]["elite"], *branch["cited"]]
    return [row for row in rows if row.get("id")]


def _count_drafts(search: SearchContext, work: Work) -> int:
    """Return how many formulas to request: more than are scored if a forecast chooses among them."""
    return work.count if work.refused else min(work.count * search.config.drafts, MAX_DRAFTS)


def _list_own_formulas(search: SearchContext, work: Work) -> list[DraftBody]:
    """Return the formulas that came with the hypothesis; at the first step they replace a question."""
    first = work.step == 0 and not work.refused
    return list(read_hypothesis(search.journal, work.branch).candidates[: work.count]) if first else []


def _list_cited_rows(memory: RoundMemory, hypothesis: BranchHypothesis) -> list[Json]:
    """Return the past factors that the hypothesis names by id, in its order, each followed by its neighbours."""
    columns = ("id", "text", "t", "rank_ic", "turnover", "weaknesses")
    rows = {row["id"]: row for row in [*memory.factors, *memory.leaders]}
    cited = [rows[name] for name in dict.fromkeys(find_cited_ids(hypothesis)) if name in rows]
    related = [like for row in cited for like in ({name: row.get(name) for name in columns}, *row.get("kin", []))]
    return list({row["id"]: row for row in reversed(related)}.values())[::-1]


def _describe_critique(search: SearchContext, work: Work) -> Json | None:
    if work.step == 0:
        return None
    critique = search.journal.read("critique", f"{work.branch}/s{work.step - 1}") or {}
    parts = ("weaknesses", "advice") if search.config.directed else ("weaknesses",)
    return {name: critique[name] for name in parts if name in critique}


def _list_tried_texts(memory: RoundMemory, hypothesis: BranchHypothesis) -> list[str]:
    """Return texts scored for the same mechanism before the round began."""
    ids = {row["id"] for row in memory.hypotheses if row.get("mechanism") == hypothesis.mechanism}
    texts = [row["text"] for row in memory.factors if row.get("hypothesis") in ids]
    return texts[-MAX_TRIED_SHOWN:]


def _list_scored_rows(search: SearchContext, work: Work) -> Json:
    """Return the outcomes of this branch's formulas so far, and its best that are not among them.

    `scored` is in the order of the scores, so that it only grows; a long one drops its oldest rows, a stride at a
    time. `best` are the dropped ones, and the formulas that the branch begins with if a person sent it back.
    """
    own = [describe_attempt(search, key) for key in _iterate_keys(search, work)]
    strides = max(0, -(-(len(own) - MAX_SCORED_SHOWN) // STRIDE))
    scored = own[strides * STRIDE :]
    ids = {row.get("id") for row in scored}
    return {"scored": scored, "best": [describe_attempt(search, mark.key) for mark in work.best if mark.id not in ids]}


def _iterate_keys(search: SearchContext, work: Work) -> Iterator[str]:
    """Yield the keys of the formulas that a branch submitted before this piece of work."""
    for step, attempt in product(range(work.step + 1), range(1 + search.config.repairs)):
        if (step, attempt) < (work.step, work.attempt):
            items = read_proposal(search.journal, f"{work.branch}/s{step}/a{attempt}").items
            yield from (item["key"] for item in items)


def _describe_refusal(search: SearchContext, key: str) -> Json:
    attempt = read_attempt(search.journal, key)
    refusal = attempt.refusal or AttemptRefusal()
    return {"text": attempt.text, "stage": refusal.stage, "errors": list(refusal.errors)}


@dataclass(frozen=True)
class Drafting:
    """Choose among the drafts of one branch.

    Attributes
    ----------
    box
        Holds the tool ``evaluation.choose_drafts``.
    hypothesis
        The parts that the evaluation server accepts.
    like
        The id of a scored factor that the drafts are to improve; empty for none.
    either
        Whether the hypothesis claims no direction: a draft with the opposite forecast then changes its sign.
    """

    box: Toolbox
    hypothesis: Json
    like: str
    either: bool

    async def redraft(self, drafts: list[DraftBody], count: int, times: int, ask: AskRevision) -> list[DraftBody]:
        """Return the drafts after `times` revisions of the most promising; the changed ones are added.

        Python code is kept without a forecast; other drafts that are not among the best are dropped. If fewer have a
        forecast than may be scored, all are kept and no revision is requested.
        """
        for number in range(1, times + 1):
            best = await self._forecast_best(drafts, max(count, MIN_DRAFTS_HANDED_BACK)) if len(drafts) > count else []
            if len(best) < count:
                break
            plain = [_drop_forecast(draft) for draft in best]
            drafts = [*await ask(number, best), *plain, *filter(_is_code, drafts)][:MAX_DRAFTS]
        return drafts

    async def choose_best(self, drafts: Sequence[DraftBody], count: int) -> list[DraftBody]:
        """Return `count` drafts: the first Python code, then those with the best forecasts, then the rest in order.

        Code has no forecast before it runs. If fewer drafts have a forecast than may be scored, the remaining places
        go to drafts that cannot be parsed or would be refused: they are worth a repair.
        """
        if len(drafts) <= count:
            return list(drafts)
        ranking = await self._rank(drafts, count)
        code = [place for place, draft in enumerate(drafts) if _is_code(draft)]
        turned: dict[int, DraftBody] = {
            place: {**drafts[place], "text": text} for place, text in ranking.turned.items()
        }
        places = list(dict.fromkeys([*code[:1], *ranking.chosen, *range(len(drafts))]))
        return [turned.get(place, drafts[place]) for place in places[:count]]

    async def count_useful(self, drafts: Sequence[DraftBody], count: int, *, python: bool) -> int:
        """Return how many drafts would be chosen for scoring: at most `count`, and one program if code is allowed."""
        code = int(python and any(map(_is_code, drafts)))
        chosen = len((await self._rank(drafts, count)).chosen) if drafts and code < count else 0
        return min(code + chosen, count)

    async def _forecast_best(self, drafts: Sequence[DraftBody], count: int) -> list[DraftBody]:
        """Return the drafts most worth scoring, for their forecast or as information, each with its forecast."""
        ranking = await self._rank(drafts, count)
        forecasts = [(drafts[place], ranking.forecasts[place]) for place in ranking.chosen]
        return [{**draft, "rank_ic": forecast.rank_ic, "known": forecast.known} for draft, forecast in forecasts]

    async def _rank(self, drafts: Sequence[DraftBody], count: int) -> DraftRanking:
        like = {"like": self.like} if self.like else {}
        texts = [draft["text"] for draft in drafts[:MAX_DRAFTS]]
        arguments = {
            "texts": texts,
            "hypothesis": self.hypothesis,
            "count": min(count, 64),
            "either": self.either,
            **like,
        }
        return DraftRanking.parse(await self.box.call("evaluation.choose_drafts", arguments))


def _drop_forecast(draft: DraftBody) -> DraftBody:
    plain = draft.copy()
    for name in ("rank_ic", "known"):
        plain.pop(name, None)  # type: ignore[misc]  # both may be absent
    return plain


def _is_code(draft: DraftBody) -> bool:
    return is_python(draft["text"])


async def score_seeds(search: SearchContext, start: int) -> list[Mark]:
    """Score some seeds from a position on; return the marks of those that the server accepted."""
    memory = await recall_memory(search, SEED_ROUND)
    marks: list[Mark] = []
    for place, seed in list(enumerate(search.own.seeds))[start : start + SEEDS_PER_STEP]:
        branch = f"{SEED_ROUND}/h{place:04d}"
        search.journal.record("hypothesis", branch, _describe_seed(search, branch, seed, memory))
        item: DraftBody = {
            "key": f"{branch}/s0/c0/a0",
            "text": seed.text,
            "rationale": seed.statement,
            "intent": "explore",
        }
        marks += place_in_niches(search, branch, [await score_formula(search, branch, item)])
    return marks


def _describe_seed(search: SearchContext, branch: str, seed: Seed, memory: RoundMemory) -> Json:
    """Return a seed's hypothesis: it works as written, over the scored horizon, on the fields that it reads."""
    return {
        "id": branch,
        "mechanism": seed.mechanism,
        "statement": seed.statement,
        "who_is_on_the_other_side": "",
        "why_it_persists": "",
        "direction": seed.direction,
        "horizon_days": search.horizon_days,
        "fields": _find_seed_fields(seed.text, memory)[:MAX_HYPOTHESIS_FIELDS],
        "regime": "any",
        "refuted_by": "its own figures",
        "source": "seed library",
    }


def _find_seed_fields(text: str, memory: RoundMemory) -> list[str]:
    """Return the fields that a seed reads; all fields if it cannot be parsed, which the server then reports."""
    try:
        return sorted(parse(text, fields=memory.fields, groups=memory.groups).fields)
    except FactorError:
        return list(memory.fields)
