"""The Idea agent: recalls what was tried and proposes hypotheses."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from ...factors.describe import find_stems, has_other_letters
from ...router.calls import build_choice_grammar
from ..errors import NoUsableReply
from ..memory.diversity import HypothesisFilter, HypothesisIntake, compute_mechanism_quota, measure_variety
from ..own_parts import ask_own_agent
from ..prompt import load_prompt
from ..questions import Question, ask_model, is_fruitless, record_failure
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
"""Past factors, hypotheses and refused ideas that the Idea agent reads; longer lists would crowd out the rest."""
MAX_RECALL_QUERY_CHARS = 4_000
MIN_EFFECTIVE_MECHANISMS = 3
"""Effective number of mechanisms of a round of at least so many hypotheses, below which a person is told and the next
round takes mechanisms that were not used yet."""
FEW_MECHANISMS = "few_mechanisms"
"""Kind of record, and event, of a round with fewer."""
NEWS_PAGE = "news"
"""The prompt page that explains texts."""
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


async def recall_memory(search: SearchContext, round_key: str) -> RoundMemory:
    """Return what was known when the round began; stored, so that a restart reads the same."""
    box = search.tools.select("idea", IDEA_AGENT_TOOLS)

    async def read() -> Json:
        past = await box.call(
            "factors.recall_attempts",
            {"limit": search.config.recall_limit, "query": _build_query(search, round_key), "language": True},
        )
        market = await box.call("market.search_fields", {"query": ""})
        # Stored once: the list is the same in every round, and longer than all the rest.
        search.journal.record(
            *OPERATOR_LIST_PLACE,
            {"operators": [_summarise_operator(operator) for operator in past.pop("operators", [])]},
        )
        arguments = {"which": "unexplored", "limit": search.config.unexplored}
        formulas = await box.call("evaluation.list_formulas", arguments) if search.config.unexplored else {}
        texts = await _read_news(search, box, round_key) if search.config.news else {}
        passages = await documents.recall_documents(search, round_key)
        return {**past, **formulas, **texts, **passages, "described": market.get("fields", [])}

    return RoundMemory.parse(await search.record_once("recall", round_key, read))


async def _read_news(search: SearchContext, box: Toolbox, round_key: str) -> Json:
    """Return the newest texts that could be known; an event reports if there are none."""
    items = (await box.call("news.search_news", {"limit": search.config.news})).get("items", [])
    if not items:
        search.progress("no_news", {"round": review.parse_round(round_key)})
    return {"news": items} if items else {}


def _list_pages(search: SearchContext, round_key: str, memory: RoundMemory) -> tuple[str, ...]:
    """Return the further pages of the prompt, which explain reviews, texts and documents where there are any."""
    rows = {NEWS_PAGE: memory.news, documents.DOCUMENTS_PAGE: memory.documents}
    return (*review.list_review_pages(search, round_key), *(page for page in rows if rows[page]))


def _build_query(search: SearchContext, round_key: str) -> str:
    """Return the query for past hypotheses: the person's words, and the mechanisms of the last round."""
    before = f"r{review.parse_round(round_key) - 1:02d}"
    last = [read_hypothesis(search.journal, f"{before}/h{index:02d}") for index in range(search.config.hypotheses)]
    words = [search.steer.goal, *search.steer.focus, *(hypothesis.mechanism for hypothesis in last)]
    return " ".join(word for word in words if word)[:MAX_RECALL_QUERY_CHARS]


def _summarise_operator(item: object) -> object:
    """Return an operator's signature and first sentence; the full text would fill the prompt."""
    if not isinstance(item, dict):
        return item
    lines = [line for line in str(item.get("doc", "")).splitlines() if line]
    return f"{item.get('signature', item.get('name', ''))}: {lines[1] if len(lines) > 1 else ''}"


async def propose_hypotheses(search: SearchContext, round_number: int, count: int) -> tuple[list[str], str]:
    """Return the keys of the round's new hypotheses, stored in the journal, and why the budget ended if it did.

    A hypothesis that repeats an earlier one or breaks the person's settings gets no branch. The agent is then asked
    once more for as many, with the refused ones in its context.
    """
    key = f"r{round_number:02d}"
    memory = await recall_memory(search, key)
    if count <= 0:  # the round only continues hypotheses that a person returned
        return [], ""
    share = compute_mechanism_quota(count, search.config.islands)
    intake = HypothesisIntake(
        _build_filter(search, memory), _list_earlier_hypotheses(search, round_number), count, share
    )
    intake.take(_take_own(search, round_number, count), "own hypotheses")
    pages = _list_pages(search, key, memory)
    invited = min(search.steer.agent_hypotheses, intake.room) if search.own.agent else 0
    context = build_prompt_context(search, memory, round_number, intake.room - invited, intake.refused)
    alone = not (intake.kept or invited) and is_fruitless(search, round_number)
    own_replies, reply = await asyncio.gather(
        ask_own_agent(search, key, invited, context) if invited else _answer_nothing(),
        _ask_agent(search, key, context, pages, intake, alone=alone),
    )
    intake.take(own_replies, "own agent")
    count_asked = context["request"]["count"]
    refusals = intake.take(reply.get("hypotheses", [])[:count_asked])
    ended = str(reply.get("ended", ""))
    if refusals and not ended:
        context = build_prompt_context(search, memory, round_number, refusals, intake.refused)
        reply = await _ask_agent(search, f"{key}/again", context, pages, intake)
        intake.take(reply.get("hypotheses", [])[:refusals])
        ended = str(reply.get("ended", ""))
    if intake.refused:
        search.journal.record("refused_ideas", key, {"items": intake.refused})
    _note_variety(search, key, intake.kept)
    return _record_branches(search, key, intake.kept), ended


def _note_variety(search: SearchContext, key: str, hypotheses: Sequence[BranchHypothesis]) -> None:
    """Record and report a round with too few effective mechanisms, unless the person asks for surveys alone."""
    effective = measure_variety(hypotheses)
    least = MIN_EFFECTIVE_MECHANISMS
    if len(hypotheses) < least or effective > least - 1e-9 or search.config.survey_share >= 1.0:
        return
    figures = {"round": review.parse_round(key), "effective": effective}
    search.journal.record(FEW_MECHANISMS, key, figures)
    search.progress(FEW_MECHANISMS, figures)


def _describe_mix(search: SearchContext, round_number: int) -> Json:
    """Return the share of surveys, and whether all mechanisms must be new since the last round had too few."""
    few = search.journal.read(FEW_MECHANISMS, f"r{round_number - 1:02d}") is not None
    return {"survey_share": search.config.survey_share} | ({"unused_only": True} if few else {})


async def _answer_nothing() -> list[Json]:
    return []


def _take_own(search: SearchContext, round_number: int, count: int) -> list[Json]:
    """Return the next of the person's own hypotheses, and record the position."""
    position = search.journal.read("own_hypotheses", f"r{round_number - 1:02d}") or {"upto": 0}
    upto = min(position["upto"] + count, len(search.own.hypotheses))
    if search.own.hypotheses:
        search.journal.record("own_hypotheses", f"r{round_number:02d}", {"upto": upto})
    return [hypothesis.model_dump(mode="json") for hypothesis in search.own.hypotheses[position["upto"] : upto]]


async def _ask_agent(
    search: SearchContext,
    key: str,
    context: Json,
    more: tuple[str, ...],
    intake: HypothesisIntake,
    *,
    alone: bool = False,
) -> Json:
    """Return the Idea agent's reply, stored in the journal; empty if no hypothesis is wanted.

    `more` names the prompts after the role's own. A small model's reply is checked against `intake`, which is not
    changed. If the search has no other source of hypotheses (`alone`), a question without a usable reply raises
    `NoUsableReply`.
    """
    if context["request"]["count"] <= 0:
        return {}

    async def ask() -> Json:
        count = context["request"]["count"]
        brief, texts = _shorten_context(context), _make_grammar_texts(context)
        surveys = count_surveys_wanted(context["request"], search.config.survey_share)
        question = Question(
            "idea", "hypotheses", key, Ideas, brief, more, items=count, texts=texts,
            check=partial(_check_ideas, intake, count, surveys),
        )  # fmt: skip  # a table
        reply = await ask_model(search, question)
        if alone and "failed" in reply:
            error = NoUsableReply(f"idea/{key}", reply["failed"])
            record_failure(search, error.place, error)
            raise error
        return reply

    return await search.record_once("ideas", key, ask)


def count_surveys_wanted(request: Json, share: float) -> int:
    """Return how many hypotheses of a request may be surveys."""
    if request.get("unused_only"):
        return 0
    return int(request["count"]) if request.get("surveying") else math.ceil(share * int(request["count"]))


async def _check_ideas(intake: HypothesisIntake, count: int, surveys: int, reply: Ideas) -> str:
    """Return why a small model's hypotheses are of no use: fewer than asked for are; empty where enough are."""
    found = count_useful_ideas(intake, [body.model_dump(mode="json") for body in reply.hypotheses[:count]], surveys)
    return "" if found >= count else f"{found} of {count} hypotheses are of use"


def count_useful_ideas(intake: HypothesisIntake, proposed: Sequence[Json], surveys: int) -> int:
    """Return how many hypotheses are of use; nothing is taken.

    Those that would get no branch are not, nor is one whose mechanism, statement or other side has no word that says
    something, a survey beyond `surveys`, or the example in the prompt's page, which a small model repeats.
    """
    known = [*intake.known, *intake.kept, _read_example()]
    trial = HypothesisIntake(intake.filter, known, intake.room, intake.share)
    trial.take(proposed)
    stated = [one for one in trial.kept if not one.either_way and _names_all(one)]
    return len(stated) + min(sum(one.either_way for one in trial.kept), surveys)


def _names_all(hypothesis: BranchHypothesis) -> bool:
    parts = (hypothesis.mechanism, hypothesis.statement, str(hypothesis.body.get("who_is_on_the_other_side", "")))
    return all(find_stems(part) or has_other_letters(part) for part in parts)


@cache
def _read_example() -> BranchHypothesis:
    page = load_prompt("idea").text
    rows = json.JSONDecoder().raw_decode(" ".join(page[page.index('{"hypotheses"') :].split()))[0]
    return BranchHypothesis.parse(rows["hypotheses"][0])


def _shorten_context(context: Json) -> Json:
    """Return the context for a model.

    It lists operators by name alone, since the agent writes no formulas, and drops the figure that only orders rows.
    """
    language, record = context["language"], context["record"]
    names = [str(operator).partition("(")[0] for operator in list_names(language["operators"])]
    rows = {name: _drop_merit(record[name]) for name in ("factors", "leaders")}
    return {**context, "language": {**language, "operators": names}, "record": {**record, **rows}}


def _drop_merit(rows: Sequence[Json]) -> list[Json]:
    """Return the rows of factors without `merit`, the figure that orders them: |t| less the price of size."""
    return [{name: value for name, value in row.items() if name != "merit"} for row in rows]


def _make_grammar_texts(context: Json) -> Callable[[], Mapping[str, str]] | None:
    """Return a function that writes the grammar of the fields that a hypothesis may name: those of the market."""
    language = context["language"]
    names = sorted({*language["fields"], *language["groups"]})
    return (lambda: {"Hypothesis.fields": build_choice_grammar(names)}) if names else None


def _record_branches(search: SearchContext, key: str, hypotheses: Sequence[BranchHypothesis]) -> list[str]:
    """Record each hypothesis under a branch of its own and return the branches."""
    branches = [f"{key}/h{index:02d}" for index in range(len(hypotheses))]
    for branch, hypothesis in zip(branches, hypotheses, strict=True):
        stated = {name: value for name, value in hypothesis.body.items() if value or name != "succeeds"}
        search.journal.record("hypothesis", branch, {"id": branch, **stated})
    return branches


def _build_filter(search: SearchContext, memory: RoundMemory) -> HypothesisFilter:
    return HypothesisFilter(search.steer, {*memory.fields, *memory.groups}, search.config.max_likeness)


def _list_earlier_hypotheses(search: SearchContext, round_number: int) -> list[BranchHypothesis]:
    """Return all hypotheses of this run's earlier rounds, in order."""
    keys = (branch for number in range(1, round_number) for branch in iterate_branches(search.journal, number, "h"))
    return [read_hypothesis(search.journal, branch) for branch in keys]


def _read_previous_refusals(search: SearchContext, round_number: int) -> list[Json]:
    """Return the hypotheses refused in the round before, so that they are not proposed again."""
    body = search.journal.read("refused_ideas", f"r{round_number - 1:02d}") or {}
    return list(body.get("items", []))


def build_prompt_context(
    search: SearchContext, memory: RoundMemory, round_number: int, count: int, refused: Sequence[Json] = ()
) -> Json:
    """Return the Idea agent's context, the least variable parts first."""
    steer = search.steer.record()
    past = memory if search.config.memory else memory.forget()
    refusals = [*_read_previous_refusals(search, round_number), *refused][-MAX_REFUSED_IDEAS_SHOWN:]
    return {
        "market": {"horizon_days": search.horizon_days, "fields": memory.described_fields},
        "language": describe_language(search.journal, memory),
        **({"known_effects": list(search.known_effects)} if search.known_effects else {}),
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
            **review.read_reviews(search, round_number),
            **({"refused": refusals} if refusals else {}),
        },
        "request": {"count": count, "round": round_number, "spent": memory.spent_share}
        | _describe_mix(search, round_number)
        | ({"surveying": True} if past.surveying else {})
        | ({"python": True} if search.config.python else {}),
        "task": "idea",
    }


def _describe_news(memory: RoundMemory) -> list[Json]:
    """Return the rows of texts from outside, under keys that mark them as strangers' words."""
    return [{name: item[name] for name in NEWS_ITEM_KEYS if name in item} for item in memory.news]
