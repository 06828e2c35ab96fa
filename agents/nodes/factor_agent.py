"""The Factor agent: turns a hypothesis into formulas, has them scored, and repairs what was refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
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
from ..model_calls import Question, ask_model, is_fruitless
from ..own_parts import Seed
from ..records import (
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
"""Windows in rows that a model held to a grammar may write."""

MAX_ELITE_SHOWN = 12

MAX_TRIED_SHOWN = 60

MAX_SCORED_SHOWN, STRIDE = 60, 30

HYPOTHESIS_KEYS = ("id", "mechanism", "statement", "direction", "horizon_days", "fields", "refuted_by")
CLAIM_KEYS = (*HYPOTHESIS_KEYS, "succeeds", "source")
"""Parts of a hypothesis that the evaluation server takes."""

MAX_DRAFTS = 512

MIN_DRAFTS_HANDED_BACK = 16
"""Drafts that an agent is shown to change: those most worth scoring."""

AskRevision = Callable[[int, Sequence[DraftBody]], Awaitable[list[DraftBody]]]
"""Asks for further drafts: the number of the time, and the drafts to change with what is expected of each."""

SEEDS_PER_STEP = 20
"""Seeds that one super-step scores; between two the search can be halted."""

SEED_ROUND = "r00"

MAX_HYPOTHESIS_FIELDS = 20


async def draft_formulas(desk: SearchContext, work: Work) -> Json:
    """Return what the agent drafted for one branch and step, kept in the journal: items of text, intent and descent.

    Raises
    ------
    NoUsableReply
        No reply could be used, and nothing was drafted in this search before.
    """

    async def ask() -> Json:
        given = _given_formulas(desk, work)
        if given:
            return {"items": given}
        context = _context(desk, work)
        intent = "repair" if work.refused else "formulas"
        more = (*(("python",) if desk.config.python else ()), *review.list_review_pages(desk, work.round_key))
        question = Question(
            "factor", intent, work.key, Candidates, context, more, refused=work.attempt,
            items=context["request"]["count"], texts=_formula_texts(desk, context),
        )  # fmt: skip
        reply = await ask_model(desk, question)
        if (
            "failed" in reply
            and is_fruitless(desk, review.parse_round(work.round_key))
            and not (work.step or work.attempt)
        ):
            raise NoUsableReply(f"factor/{work.key}", reply["failed"])  # given up by the barrier, unless all are such
        drafts, ended = await _redraft(desk, work, question, reply.pop("candidates", []))
        shown = _possible_parents(context)
        return {**reply, **ended, "items": [add_descent(each, shown) for each in drafts]}

    return await desk.record_once("drafts", work.key, ask)


async def choose_formulas(desk: SearchContext, work: Work) -> BranchProposal:
    """Return the drafts of one branch and step that are scored, kept in the journal, each with a key of its own.

    They are chosen when their turn comes, by all that was scored before, that of the round's earlier branches too.
    """

    async def choose() -> Json:
        kept = desk.journal.read("drafts", work.key) or {}
        drafts = BranchProposal.parse(kept).items
        best = await _drafting(desk, work).choose_best(drafts, work.count)
        return {**kept, "items": [{"key": key, **draft} for key, draft in zip(work.attempts(), best, strict=False)]}

    return BranchProposal.parse(await desk.record_once("proposal", work.key, choose))


def _formula_texts(desk: SearchContext, context: Json) -> Callable[[], Mapping[str, str]] | None:
    """Return what writes the grammar of the formulas; nothing where code is taken, too, which no grammar holds."""
    spoken = context["language"]
    if desk.config.python or not spoken["fields"]:
        return None
    return lambda: {"Candidate.text": _formula_grammar(tuple(spoken["fields"]), tuple(spoken["groups"]))}


@cache
def _formula_grammar(fields: tuple[str, ...], groups: tuple[str, ...]) -> str:
    return decoding_grammar(fields, groups, GRAMMAR_WINDOWS)


def _drafting(desk: SearchContext, work: Work) -> Drafting:
    hypothesis = read_hypothesis(desk.journal, work.branch)
    memory = read_memory(desk.journal, work.round_key)
    known = [work.best[0].id] if work.best else [str(row["id"]) for row in _cited_rows(memory, hypothesis)]
    box = desk.tools.select("factor", FACTOR_AGENT_TOOLS)
    return Drafting(box, hypothesis.select(CLAIM_KEYS), (*known, "")[0], hypothesis.either_way)


async def _redraft(
    desk: SearchContext, work: Work, question: Question, drafts: Sequence[DraftBody]
) -> tuple[list[DraftBody], Json]:
    """Return the drafts after the agent changed those most worth scoring, as often as the campaign file asks.

    Also why the budget ended, where it did meanwhile.
    """
    ended: Json = {}

    async def again(number: int, best: Sequence[DraftBody]) -> list[DraftBody]:
        names = ("text", "rank_ic", "known", "intent", "parent")
        rows: list[Json] = [{**draft} for draft in best]
        shown = [{name: row[name] for name in names if row.get(name, "") != ""} for row in rows]
        context = {**question.context, "branch": {**question.context["branch"], "drafts": shown}}
        asked = replace(question, key=f"{question.key}/d{number}", context=context)
        reply = await ask_model(desk, asked)
        ended.update({"ended": reply["ended"]} if reply.get("ended") else {})
        return list(reply.get("candidates", []))

    times = 0 if work.refused else desk.config.redrafts
    return await _drafting(desk, work).redraft(list(drafts), work.count, times, again), ended


async def score_formula(desk: SearchContext, branch: str, item: DraftBody) -> FormulaAttempt:
    """Return what became of one formula at the evaluation server, which is asked once per key."""
    box = desk.tools.select("factor", FACTOR_AGENT_TOOLS)
    arguments = {
        "text": item["text"],
        "hypothesis": read_hypothesis(desk.journal, branch).select(CLAIM_KEYS),
        "key": item["key"],
        "description": str(item.get("rationale", "")),
    }

    async def call() -> Json:
        reply = await box.call("evaluation.score_factor", arguments)
        # Whether it was new may differ after a restart; nothing may depend on it.
        answered = {name: value for name, value in reply.items() if name != "new"}
        body: Json = {**item}
        stated: Json = {name: body[name] for name in ("text", "intent", "parent", "parent_t", "where") if name in body}
        return {**stated, **answered, "branch": branch}

    return FormulaAttempt.parse(item["key"], await desk.record_once("score", item["key"], call))


def describe_attempt(desk: SearchContext, key: str) -> Json:
    """Return what a prompt says of one attempt: the formula's figures, or the stage at which a program refused it."""
    attempt = read_attempt(desk.journal, key)
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


def _context(desk: SearchContext, work: Work) -> Json:
    """Return the context, of which a server computes an equal beginning only once.

    First what all branches of a round share, then what a branch is told at all its steps, to which later steps add at the
    end, then what this one question is about.
    """
    memory, hypothesis = read_memory(desk.journal, work.round_key), read_hypothesis(desk.journal, work.branch)
    past = memory if desk.config.memory else memory.forget()
    learnt = describe_operators(desk, review.parse_round(work.round_key))
    return {
        "language": describe_language(desk.journal, memory),
        "market": {"horizon_days": desk.horizon_days},
        **({"steer": desk.steer.record()} if desk.steer.record() else {}),
        "record": {
            "library": memory.library,
            **({"operators": learnt} if learnt else {}),
            **review.read_reviews(desk, review.parse_round(work.round_key)),
            "unexplored": past.unexplored,
            "tried": _tried_texts(past, hypothesis),
            "elite": [describe_attempt(desk, mark.key) for mark in work.elite[:MAX_ELITE_SHOWN]],
        },
        "hypothesis": {name: value for name, value in hypothesis.body.items() if name != "candidates"},
        "branch": {
            "cited": _cited_rows(past, hypothesis),
            **_scored_rows(desk, work),
            "critique": _describe_critique(desk, work),
            "refused": [_describe_refusal(desk, key) for key in work.refused],
        },
        "request": {"count": _draft_count(desk, work), "step": work.step, **_rules(desk)},
        "task": "repair" if work.refused else "factor",
    }


def _rules(desk: SearchContext) -> Json:
    """Return what a request says beside how many: that code is taken, that no directed change is wanted."""
    return ({"python": True} if desk.config.python else {}) | ({} if desk.config.directed else {"directed": False})


def _possible_parents(context: Json) -> list[Json]:
    """Return the formulas that a prompt showed as possible parents."""
    branch = context["branch"]
    rows = [*branch["scored"], *branch["best"], *context["record"]["elite"], *branch["cited"]]
    return [row for row in rows if row.get("id")]


def _draft_count(desk: SearchContext, work: Work) -> int:
    """Return how many formulas are asked for: more than may be scored where a forecast is to choose among them."""
    return work.count if work.refused else min(work.count * desk.config.drafts, MAX_DRAFTS)


def _given_formulas(desk: SearchContext, work: Work) -> list[DraftBody]:
    """Return the formulas that came with the hypothesis, at the first step; nobody is asked for others then."""
    first = work.step == 0 and not work.refused
    return list(read_hypothesis(desk.journal, work.branch).candidates[: work.count]) if first else []


def _cited_rows(memory: RoundMemory, hypothesis: BranchHypothesis) -> list[Json]:
    """Return the past factors that the hypothesis names by id, in its order, each followed by what is known to be like it."""
    shown = ("id", "text", "t", "rank_ic", "turnover", "weaknesses")
    rows = {row["id"]: row for row in [*memory.factors, *memory.leaders]}
    cited = [rows[name] for name in dict.fromkeys(find_cited_ids(hypothesis)) if name in rows]
    related = [like for row in cited for like in ({name: row.get(name) for name in shown}, *row.get("kin", []))]
    return list({row["id"]: row for row in reversed(related)}.values())[::-1]


def _describe_critique(desk: SearchContext, work: Work) -> Json | None:
    if work.step == 0:
        return None
    kept = desk.journal.read("critique", f"{work.branch}/s{work.step - 1}") or {}
    heard = ("weaknesses", "advice") if desk.config.directed else ("weaknesses",)
    return {name: kept[name] for name in heard if name in kept}


def _tried_texts(memory: RoundMemory, hypothesis: BranchHypothesis) -> list[str]:
    """Return texts measured for the same mechanism before the round began."""
    same = {row["id"] for row in memory.hypotheses if row.get("mechanism") == hypothesis.mechanism}
    texts = [row["text"] for row in memory.factors if row.get("hypothesis") in same]
    return texts[-MAX_TRIED_SHOWN:]


def _scored_rows(desk: SearchContext, work: Work) -> Json:
    """Return what became of this branch's formulas so far, and the best that are not among them.

    `scored` is in the order of the scores, so that it only grows; of many it drops the oldest, a stride at a time. `best`
    are those that it dropped, and what the branch begins with where a person sent something back.
    """
    own = [describe_attempt(desk, key) for key in _attempted_keys(desk, work)]
    strides = max(0, -(-(len(own) - MAX_SCORED_SHOWN) // STRIDE))
    scored = own[strides * STRIDE :]
    known = {row.get("id") for row in scored}
    return {"scored": scored, "best": [describe_attempt(desk, mark.key) for mark in work.best if mark.id not in known]}


def _attempted_keys(desk: SearchContext, work: Work) -> Iterator[str]:
    """Yield the keys of the formulas that a branch had scored before this piece of work."""
    for step, attempt in product(range(work.step + 1), range(1 + desk.config.repairs)):
        if (step, attempt) < (work.step, work.attempt):
            items = read_proposal(desk.journal, f"{work.branch}/s{step}/a{attempt}").items
            yield from (item["key"] for item in items)


def _describe_refusal(desk: SearchContext, key: str) -> Json:
    attempt = read_attempt(desk.journal, key)
    refusal = attempt.refusal or AttemptRefusal()
    return {"text": attempt.text, "stage": refusal.stage, "errors": list(refusal.errors)}


@dataclass(frozen=True)
class Drafting:
    """Chooses among the drafts of one branch.

    Attributes
    ----------
    box
        Holds the tool ``evaluation.choose_drafts``.
    hypothesis
        As the evaluation server takes it.
    like
        The id of a scored factor that the drafts are to improve; empty for none.
    either
        Whether the hypothesis claims no direction: what promises the opposite one is then turned round.
    """

    box: Toolbox
    hypothesis: Json
    like: str
    either: bool

    async def redraft(self, drafts: list[DraftBody], count: int, times: int, ask: AskRevision) -> list[DraftBody]:
        """Return the drafts after those most worth scoring were handed back so many times; changes of them have joined these.

        Of the others only Python code stays, of which nothing can be expected. Where fewer promise anything than may be
        scored, all stay and nobody is asked.
        """
        for number in range(1, times + 1):
            best = await self._forecast_best(drafts, max(count, MIN_DRAFTS_HANDED_BACK)) if len(drafts) > count else []
            if len(best) < count:
                break
            plain = [_drop_forecast(draft) for draft in best]
            drafts = [*await ask(number, best), *plain, *filter(_is_code, drafts)][:MAX_DRAFTS]
        return drafts

    async def choose_best(self, drafts: Sequence[DraftBody], count: int) -> list[DraftBody]:
        """Return as many drafts as may be scored: the first Python code, those that promise most, then the rest in order.

        Of code nothing can be expected before it runs. Where fewer promise anything than may be scored, places are left for
        what cannot be read or would be refused: it is worth a repair.
        """
        if len(drafts) <= count:
            return list(drafts)
        ranking = await self._rank(drafts, count)
        code = [place for place, draft in enumerate(drafts) if _is_code(draft)]
        turned: dict[int, DraftBody] = {
            place: {**drafts[place], "text": text} for place, text in ranking.turned.items()
        }
        chosen = list(dict.fromkeys([*code[:1], *ranking.chosen, *range(len(drafts))]))
        return [turned.get(place, drafts[place]) for place in chosen[:count]]

    async def _forecast_best(self, drafts: Sequence[DraftBody], count: int) -> list[DraftBody]:
        """Return the drafts that are most worth scoring, for what they promise or would tell, each with its forecast."""
        ranking = await self._rank(drafts, count)
        forecasts = [(drafts[place], ranking.forecasts[place]) for place in ranking.chosen]
        return [{**draft, "rank_ic": forecast.rank_ic, "known": forecast.known} for draft, forecast in forecasts]

    async def _rank(self, drafts: Sequence[DraftBody], count: int) -> DraftRanking:
        like = {"like": self.like} if self.like else {}
        texts = [draft["text"] for draft in drafts[:MAX_DRAFTS]]
        asked = {"texts": texts, "hypothesis": self.hypothesis, "count": min(count, 64), "either": self.either, **like}
        return DraftRanking.parse(await self.box.call("evaluation.choose_drafts", asked))


def _drop_forecast(draft: DraftBody) -> DraftBody:
    plain = draft.copy()
    for name in ("rank_ic", "known"):
        plain.pop(name, None)  # type: ignore[misc]  # both may be absent
    return plain


def _is_code(draft: DraftBody) -> bool:
    return is_python(draft["text"])


async def score_seeds(desk: SearchContext, start: int) -> list[Mark]:
    """Score some seeds from a position on and return the marks of those that the server took."""
    memory = await recall_memory(desk, SEED_ROUND)
    marks: list[Mark] = []
    for place, seed in list(enumerate(desk.own.seeds))[start : start + SEEDS_PER_STEP]:
        branch = f"{SEED_ROUND}/h{place:04d}"
        desk.journal.record("hypothesis", branch, _describe_seed(desk, branch, seed, memory))
        item: DraftBody = {
            "key": f"{branch}/s0/c0/a0",
            "text": seed.text,
            "rationale": seed.statement,
            "intent": "explore",
        }
        marks += place_in_niches(desk, branch, [await score_formula(desk, branch, item)])
    return marks


def _describe_seed(desk: SearchContext, branch: str, seed: Seed, memory: RoundMemory) -> Json:
    """Return what a seed claims: that it works as it is written, over the horizon that is scored, on what it reads."""
    return {
        "id": branch,
        "mechanism": seed.mechanism,
        "statement": seed.statement,
        "who_is_on_the_other_side": "",
        "why_it_persists": "",
        "direction": seed.direction,
        "horizon_days": desk.horizon_days,
        "fields": _seed_fields(seed.text, memory)[:MAX_HYPOTHESIS_FIELDS],
        "regime": "any",
        "refuted_by": "its own figures",
        "source": "seed library",
    }


def _seed_fields(text: str, memory: RoundMemory) -> list[str]:
    """Return what a seed reads; all fields where it cannot be read, which the server then says."""
    try:
        return sorted(parse(text, fields=memory.fields, groups=memory.groups).fields)
    except FactorError:
        return list(memory.fields)
