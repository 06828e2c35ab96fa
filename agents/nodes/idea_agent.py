"""The Idea agent: recalls what was tried and proposes hypotheses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ...router.calls import build_choice_grammar
from ..errors import NoUsableReply
from ..memory.diversity import HypothesisFilter, HypothesisIntake, compute_mechanism_quota
from ..model_calls import Question, ask_model, is_fruitless, record_failure
from ..own_parts import ask_own_agent
from ..records import (
    OPERATOR_LIST_PLACE,
    BranchHypothesis,
    RoundMemory,
    describe_language,
    iterate_branches,
    list_names,
    read_hypothesis,
)
from ..schemas import Ideas
from ..search_context import Json, SearchContext, Toolbox
from . import documents, review

IDEA_AGENT_TOOLS = ("factors.recall_attempts", "market.search_fields", "evaluation.list_formulas", "news.search_news")

MAX_FACTORS_SHOWN = 30
MAX_HYPOTHESES_SHOWN = 100
MAX_REFUSED_IDEAS_SHOWN = 10
"""Past factors and hypotheses that the Idea agent reads; more would push out what matters."""
MAX_RECALL_QUERY_CHARS = 4_000
NEWS_PAGE = "news"
"""The page that says what texts are."""
NEWS_ITEM_KEYS = (
    "id",
    "kind",
    "source",
    "published",
    "symbols",
    "credibility",
    "untrusted_title",
    "untrusted_text",
    "cut",
)


async def recall_memory(desk: SearchContext, round_key: str) -> RoundMemory:
    """Return what was known when the round began; kept, so that a restart reads the same."""
    box = desk.tools.select("idea", IDEA_AGENT_TOOLS)

    async def read() -> Json:
        past = await box.call(
            "factors.recall_attempts",
            {"limit": desk.config.recall_limit, "query": _query(desk, round_key), "language": True},
        )
        known = await box.call("market.search_fields", {"query": ""})
        # The same at every round, and longer than all the rest.
        desk.journal.record(
            *OPERATOR_LIST_PLACE, {"operators": [_summarise_operator(each) for each in past.pop("operators", [])]}
        )
        wanted = {"which": "unexplored", "limit": desk.config.unexplored}
        new = await box.call("evaluation.list_formulas", wanted) if desk.config.unexplored else {}
        texts = await _newest_texts(desk, box, round_key) if desk.config.news else {}
        passages = await documents.recall_documents(desk, round_key)
        return {**past, **new, **texts, **passages, "described": known.get("fields", [])}

    return RoundMemory.parse(await desk.record_once("recall", round_key, read))


async def _newest_texts(desk: SearchContext, box: Toolbox, round_key: str) -> Json:
    """Return the newest texts that could be known; a person who asked for some is told where there are none."""
    items = (await box.call("news.search_news", {"limit": desk.config.news})).get("items", [])
    if not items:
        desk.progress("no_news", {"round": review.parse_round(round_key)})
    return {"news": items} if items else {}


def _pages(desk: SearchContext, round_key: str, memory: RoundMemory) -> tuple[str, ...]:
    """Return the further pages of the prompt: what reviews, texts and documents are, where there are any."""
    rows = {NEWS_PAGE: memory.news, documents.DOCUMENTS_PAGE: memory.documents}
    return (*review.list_review_pages(desk, round_key), *(page for page in rows if rows[page]))


def _query(desk: SearchContext, round_key: str) -> str:
    """Return what past hypotheses should be about to be worth a thought: the person's words, and the last round's own."""
    before = f"r{review.parse_round(round_key) - 1:02d}"
    last = [read_hypothesis(desk.journal, f"{before}/h{index:02d}") for index in range(desk.config.hypotheses)]
    words = [desk.steer.goal, *desk.steer.focus, *(hypothesis.mechanism for hypothesis in last)]
    return " ".join(word for word in words if word)[:MAX_RECALL_QUERY_CHARS]


def _summarise_operator(item: object) -> object:
    """Return an operator as its signature and first sentence; its whole page would fill the prompt."""
    if not isinstance(item, dict):
        return item
    lines = [line for line in str(item.get("doc", "")).splitlines() if line]
    return f"{item.get('signature', item.get('name', ''))}: {lines[1] if len(lines) > 1 else ''}"


async def propose_hypotheses(desk: SearchContext, round_number: int, count: int) -> tuple[list[str], str]:
    """Return the keys of the round's new hypotheses, each kept in the journal, and why the budget ended, if it did.

    What repeats an earlier hypothesis, or is not what the person asked for, gets no branch: the agent is told which, and
    asked once more for as many.
    """
    key = f"r{round_number:02d}"
    memory = await recall_memory(desk, key)
    if count <= 0:  # a round that only takes up what a person sent back
        return [], ""
    share = compute_mechanism_quota(count, desk.config.islands)
    intake = HypothesisIntake(_build_filter(desk, memory), _earlier_hypotheses(desk, round_number), count, share)
    intake.take(_take_own(desk, round_number, count), "own hypotheses")
    pages = _pages(desk, key, memory)
    invited = min(desk.steer.agent_hypotheses, intake.room) if desk.own.agent else 0
    context = build_prompt_context(desk, memory, round_number, intake.room - invited, intake.refused)
    alone = not (intake.kept or invited) and is_fruitless(desk, round_number)
    own_replies, reply = await asyncio.gather(
        ask_own_agent(desk, key, invited, context) if invited else _no_hypotheses(),
        _ask_agent(desk, key, context, pages, alone=alone),
    )
    intake.take(own_replies, "own agent")
    wanted = context["request"]["count"]
    missed = intake.take(reply.get("hypotheses", [])[:wanted])
    ended = str(reply.get("ended", ""))
    if missed and not ended:
        context = build_prompt_context(desk, memory, round_number, missed, intake.refused)
        reply = await _ask_agent(desk, f"{key}/again", context, pages)
        intake.take(reply.get("hypotheses", [])[:missed])
        ended = str(reply.get("ended", ""))
    if intake.refused:
        desk.journal.record("refused_ideas", key, {"items": intake.refused})
    return _keep(desk, key, intake.kept), ended


async def _no_hypotheses() -> list[Json]:
    """Return nothing, where nobody is to be asked."""
    return []


def _take_own(desk: SearchContext, round_number: int, count: int) -> list[Json]:
    """Return the person's own hypotheses whose turn it is, and note how far they went."""
    taken = desk.journal.read("own_hypotheses", f"r{round_number - 1:02d}") or {"upto": 0}
    upto = min(taken["upto"] + count, len(desk.own.hypotheses))
    if desk.own.hypotheses:
        desk.journal.record("own_hypotheses", f"r{round_number:02d}", {"upto": upto})
    return [each.model_dump(mode="json") for each in desk.own.hypotheses[taken["upto"] : upto]]


async def _ask_agent(
    desk: SearchContext, key: str, context: Json, more: tuple[str, ...], *, alone: bool = False
) -> Json:
    """Return the Idea agent's reply, kept in the journal; nothing where no hypothesis is wanted of it.

    Where the search has nothing beside it (`alone`), a question without a usable reply is no answer, and is raised.
    """
    if context["request"]["count"] <= 0:
        return {}

    async def ask() -> Json:
        count = context["request"]["count"]
        brief, texts = _shorten_context(context), _field_texts(context)
        question = Question("idea", "hypotheses", key, Ideas, brief, more, items=count, texts=texts)
        reply = await ask_model(desk, question)
        if alone and "failed" in reply:
            error = NoUsableReply(f"idea/{key}", reply["failed"])
            record_failure(desk, error.place, error)
            raise error
        return reply

    return await desk.record_once("ideas", key, ask)


def _shorten_context(context: Json) -> Json:
    """Return a context as a model is told it.

    It has the names of operators alone, since the agent writes no formulas, and no figure that only orders the rows.
    """
    spoken, record = context["language"], context["record"]
    listed = [str(each).partition("(")[0] for each in list_names(spoken["operators"])]
    rows = {name: _drop_merit(record[name]) for name in ("factors", "leaders")}
    return {**context, "language": {**spoken, "operators": listed}, "record": {**record, **rows}}


def _drop_merit(rows: Sequence[Json]) -> list[Json]:
    """Return the rows of factors without the figure that orders them: |t| less the price of size."""
    return [{name: value for name, value in row.items() if name != "merit"} for row in rows]


def _field_texts(context: Json) -> Callable[[], Mapping[str, str]] | None:
    """Return what writes the grammar of the fields that a hypothesis may name: those of the market."""
    spoken = context["language"]
    known = sorted({*spoken["fields"], *spoken["groups"]})
    return (lambda: {"Hypothesis.fields": build_choice_grammar(known)}) if known else None


def _keep(desk: SearchContext, key: str, hypotheses: Sequence[BranchHypothesis]) -> list[str]:
    """Give each hypothesis a branch of its own and return their keys."""
    branches = [f"{key}/h{index:02d}" for index in range(len(hypotheses))]
    for branch, hypothesis in zip(branches, hypotheses, strict=True):
        stated = {name: value for name, value in hypothesis.body.items() if value or name != "succeeds"}
        desk.journal.record("hypothesis", branch, {"id": branch, **stated})
    return branches


def _build_filter(desk: SearchContext, memory: RoundMemory) -> HypothesisFilter:
    return HypothesisFilter(desk.steer, {*memory.fields, *memory.groups}, desk.config.max_likeness)


def _earlier_hypotheses(desk: SearchContext, round_number: int) -> list[BranchHypothesis]:
    """Return all hypotheses of this run's earlier rounds, in their order."""
    keys = (branch for number in range(1, round_number) for branch in iterate_branches(desk.journal, number, "h"))
    return [read_hypothesis(desk.journal, branch) for branch in keys]


def _previous_refusals(desk: SearchContext, round_number: int) -> list[Json]:
    """Return what got no branch in the round before, so that it is not proposed again."""
    kept = desk.journal.read("refused_ideas", f"r{round_number - 1:02d}") or {}
    return list(kept.get("items", []))


def build_prompt_context(
    desk: SearchContext, memory: RoundMemory, round_number: int, count: int, refused: Sequence[Json] = ()
) -> Json:
    """Return the context, what changes least first."""
    steer = desk.steer.record()
    past = memory if desk.config.memory else memory.forget()
    refusals = [*_previous_refusals(desk, round_number), *refused][-MAX_REFUSED_IDEAS_SHOWN:]
    return {
        "market": {"horizon_days": desk.horizon_days, "fields": memory.described_fields},
        "language": describe_language(desk.journal, memory),
        **({"steer": steer} if steer else {}),
        **({"untrusted_news": _describe_news(memory)} if memory.news else {}),
        **({"untrusted_documents": memory.documents} if memory.documents else {}),
        "record": {
            "hypotheses": past.hypotheses[-MAX_HYPOTHESES_SHOWN:],
            "factors": past.factors[:MAX_FACTORS_SHOWN],
            "leaders": past.leaders,
            "unexplored": past.unexplored,
            "mechanisms": past.mechanisms,
            "refusals": past.refusals,
            "library": memory.library,
            **({"decaying": memory.decaying} if memory.decaying else {}),
            **review.read_reviews(desk, round_number),
            **({"refused": refusals} if refusals else {}),
        },
        "request": {"count": count, "round": round_number, "spent": memory.spent_share}
        | ({"surveying": True} if past.surveying else {})
        | ({"python": True} if desk.config.python else {}),
        "task": "idea",
    }


def _describe_news(memory: RoundMemory) -> list[Json]:
    """Return what the agent is told of texts from outside: words by strangers, under keys that say so."""
    return [{name: item[name] for name in NEWS_ITEM_KEYS if name in item} for item in memory.news]
