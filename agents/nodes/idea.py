"""The Idea agent: recalls what was tried and proposes hypotheses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ...router.calls.reply_grammar import one_of
from ..asking import Question, answer
from ..errors import NoUsableReply
from ..memory.diversity import Pile, Sieve, share_of
from ..memory.refs import branches
from ..own.custom_agent import ask_guest
from ..protocols import Desk, Json, Toolbox
from ..retry import keep_failure
from ..schemas import Ideas
from ..unusable_replies import fruitless
from . import documents, review

TOOLS = ("factors.recall_attempts", "market.search_fields", "evaluation.list_formulas", "news.search_news")

SHOWN = 30
SHOWN_HYPOTHESES = 100
SHOWN_REFUSED = 10
"""Past factors and hypotheses that the Idea agent reads; more would push out what matters."""
LONGEST_QUERY = 4_000
NEWS = "news"
"""The page that says what texts are."""
TOLD_OF_TEXTS = (
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
LANGUAGE = ("language", "operators")
"""Where the journal keeps what is told of the operators."""


async def recall(desk: Desk, round_key: str) -> Json:
    """Return the desk's memory as it stood when the round began; kept, so that a restart reads the same."""
    box = desk.tools.held_by("idea", TOOLS)

    async def read() -> Json:
        past = await box.call(
            "factors.recall_attempts",
            {"limit": desk.config.recall_limit, "query": _query(desk, round_key), "language": True},
        )
        known = await box.call("market.search_fields", {"query": ""})
        # The same at every round, and longer than all the rest.
        desk.journal.record(*LANGUAGE, {"operators": [_operator(each) for each in past.pop("operators", [])]})
        wanted = {"which": "unexplored", "limit": desk.config.unexplored}
        new = await box.call("evaluation.list_formulas", wanted) if desk.config.unexplored else {}
        texts = await _newest(desk, box, round_key) if desk.config.news else {}
        read = await documents.recalled(desk, round_key)
        return {**past, **new, **texts, **read, "described": known.get("fields", [])}

    return await desk.once("recall", round_key, read)


async def _newest(desk: Desk, box: Toolbox, round_key: str) -> Json:
    """Return the newest texts that could be known; a person who asked for some is told where there are none."""
    found = (await box.call("news.search_news", {"limit": desk.config.news})).get("items", [])
    if not found:
        desk.progress("no_news", {"round": review.number_of(round_key)})
    return {"news": found} if found else {}


def _pages(desk: Desk, round_key: str, memory: Json) -> tuple[str, ...]:
    """Return the further pages of the prompt: what reviews, texts and documents are, where there are any."""
    told = {NEWS: memory.get("news"), documents.PAGE: memory.get("documents")}
    return (*review.prompts(desk, round_key), *(page for page, there in told.items() if there))


def _query(desk: Desk, round_key: str) -> str:
    """Return what past hypotheses should be about to be worth a thought: the person's words, and the last round's own."""
    before = f"r{review.number_of(round_key) - 1:02d}"
    last = [desk.journal.read("hypothesis", f"{before}/h{index:02d}") or {} for index in range(desk.config.hypotheses)]
    words = [desk.steer.goal, *desk.steer.focus, *(str(each.get("mechanism", "")) for each in last)]
    return " ".join(word for word in words if word)[:LONGEST_QUERY]


def names(listed: Sequence[object]) -> list[str]:
    """Return names from a list of names or of objects with a name."""
    return [item if isinstance(item, str) else str(item["name"]) for item in listed if isinstance(item, (str, dict))]


def language(desk: Desk, memory: Json) -> Json:
    """Return what every prompt says of the language: its operators, and the fields and groups of this market."""
    return {
        "operators": (desk.journal.read(*LANGUAGE) or {}).get("operators", []),
        "fields": names(memory.get("fields", [])),
        "groups": names(memory.get("groups", [])),
    }


def _operator(item: object) -> object:
    """Return an operator as its signature and first sentence; its whole page would fill the prompt."""
    if not isinstance(item, dict):
        return item
    lines = [line for line in str(item.get("doc", "")).splitlines() if line]
    return f"{item.get('signature', item.get('name', ''))}: {lines[1] if len(lines) > 1 else ''}"


async def propose(desk: Desk, round_number: int, count: int) -> tuple[list[str], str]:
    """Return the keys of the round's new hypotheses, each kept in the journal, and why the budget ended, if it did.

    What repeats an earlier hypothesis, or is not what the person asked for, gets no branch: the agent is told which, and
    asked once more for as many.
    """
    key = f"r{round_number:02d}"
    memory = await recall(desk, key)
    if count <= 0:  # a round that only takes up what a person sent back
        return [], ""
    share = share_of(count, desk.config.islands)
    pile = Pile(_sieve(desk, memory), _earlier(desk, round_number), count, share)
    pile.take(_own(desk, round_number, count), "own hypotheses")
    pages = _pages(desk, key, memory)
    invited = min(desk.steer.agent_hypotheses, pile.room) if desk.own.agent else 0
    context = prompt_context(desk, memory, round_number, pile.room - invited, pile.refused)
    alone = not (pile.kept or invited) and fruitless(desk, round_number)
    guest, reply = await asyncio.gather(
        ask_guest(desk, key, invited, context) if invited else _nothing(),
        _asked(desk, key, context, pages, alone=alone),
    )
    pile.take(guest, "own agent")
    wanted = context["request"]["count"]
    missed = pile.take(reply.get("hypotheses", [])[:wanted])
    ended = str(reply.get("ended", ""))
    if missed and not ended:
        context = prompt_context(desk, memory, round_number, missed, pile.refused)
        reply = await _asked(desk, f"{key}/again", context, pages)
        pile.take(reply.get("hypotheses", [])[:missed])
        ended = str(reply.get("ended", ""))
    if pile.refused:
        desk.journal.record("refused_ideas", key, {"items": pile.refused})
    return _keep(desk, key, pile.kept), ended


async def _nothing() -> list[Json]:
    """Return nothing, where nobody is to be asked."""
    return []


def _own(desk: Desk, round_number: int, count: int) -> list[Json]:
    """Return the person's own hypotheses whose turn it is, and note how far they went."""
    taken = desk.journal.read("own_hypotheses", f"r{round_number - 1:02d}") or {"upto": 0}
    upto = min(taken["upto"] + count, len(desk.own.hypotheses))
    if desk.own.hypotheses:
        desk.journal.record("own_hypotheses", f"r{round_number:02d}", {"upto": upto})
    return [each.model_dump(mode="json") for each in desk.own.hypotheses[taken["upto"] : upto]]


async def _asked(desk: Desk, key: str, context: Json, more: tuple[str, ...], *, alone: bool = False) -> Json:
    """Return the Idea agent's reply, kept in the journal; nothing where no hypothesis is wanted of it.

    Where the search has nothing beside it (`alone`), a question without a usable reply is no answer, and is raised.
    """
    if context["request"]["count"] <= 0:
        return {}

    async def ask() -> Json:
        count = context["request"]["count"]
        said, texts = _brief(context), _texts_held(context)
        question = Question("idea", "hypotheses", key, Ideas, said, more, items=count, texts=texts)
        reply = await answer(desk, question)
        if alone and "failed" in reply:
            error = NoUsableReply(f"idea/{key}", reply["failed"])
            keep_failure(desk, error.place, error)
            raise error
        return reply

    return await desk.once("ideas", key, ask)


def _brief(context: Json) -> Json:
    """Return a context as a model is told it.

    It has the names of operators alone, since the agent writes no formulas, and no figure that only orders the rows.
    """
    spoken, record = context["language"], context["record"]
    listed = [str(each).partition("(")[0] for each in names(spoken["operators"])]
    rows = {name: _without_merit(record[name]) for name in ("factors", "leaders")}
    return {**context, "language": {**spoken, "operators": listed}, "record": {**record, **rows}}


def _without_merit(rows: Sequence[Json]) -> list[Json]:
    """Return the rows of factors without the figure that orders them: |t| less the price of size."""
    return [{name: value for name, value in row.items() if name != "merit"} for row in rows]


def _texts_held(context: Json) -> Callable[[], Mapping[str, str]] | None:
    """Return what writes the grammar of the fields that a hypothesis may name: those of the market."""
    spoken = context["language"]
    known = sorted({*spoken["fields"], *spoken["groups"]})
    return (lambda: {"Hypothesis.fields": one_of(known)}) if known else None


def _keep(desk: Desk, key: str, hypotheses: Sequence[Json]) -> list[str]:
    """Give each hypothesis a branch of its own and return their keys."""
    branches = [f"{key}/h{index:02d}" for index in range(len(hypotheses))]
    for branch, hypothesis in zip(branches, hypotheses, strict=True):
        said = {name: value for name, value in hypothesis.items() if value or name != "succeeds"}
        desk.journal.record("hypothesis", branch, {"id": branch, **said})
    return branches


def _sieve(desk: Desk, memory: Json) -> Sieve:
    spoken = language(desk, memory)
    return Sieve(desk.steer, {*spoken["fields"], *spoken["groups"]}, desk.config.max_likeness)


def _earlier(desk: Desk, round_number: int) -> list[Json]:
    """Return all hypotheses of this run's earlier rounds, in their order."""
    keys = (branch for number in range(1, round_number) for branch in branches(desk.journal, number, "h"))
    return [desk.journal.read("hypothesis", branch) or {} for branch in keys]


def _refused_before(desk: Desk, round_number: int) -> list[Json]:
    """Return what got no branch in the round before, so that it is not proposed again."""
    kept = desk.journal.read("refused_ideas", f"r{round_number - 1:02d}") or {}
    return list(kept.get("items", []))


def prompt_context(desk: Desk, memory: Json, round_number: int, count: int, refused: Sequence[Json] = ()) -> Json:
    """Return the context, what changes least first."""
    steer = desk.steer.record()
    remembered = memory if desk.config.memory else {}
    told = [*_refused_before(desk, round_number), *refused][-SHOWN_REFUSED:]
    return {
        "market": {"horizon_days": desk.horizon_days, "fields": memory.get("described") or memory.get("fields", [])},
        "language": language(desk, memory),
        **({"steer": steer} if steer else {}),
        **({"untrusted_news": _texts(memory)} if memory.get("news") else {}),
        **({"untrusted_documents": memory["documents"]} if memory.get("documents") else {}),
        "record": {
            "hypotheses": remembered.get("hypotheses", [])[-SHOWN_HYPOTHESES:],
            "factors": remembered.get("factors", [])[:SHOWN],
            "leaders": remembered.get("leaders", []),
            "unexplored": remembered.get("unexplored", []),
            "mechanisms": remembered.get("mechanisms", []),
            "refusals": remembered.get("refusals", []),
            "library": memory.get("library", []),
            **({"decaying": memory["decaying"]} if memory.get("decaying") else {}),
            **review.shown(desk, round_number),
            **({"refused": told} if told else {}),
        },
        "request": {"count": count, "round": round_number, "spent": memory.get("spent", 0.0)}
        | ({"surveying": True} if remembered.get("surveying") else {})
        | ({"python": True} if desk.config.python else {}),
        "task": "idea",
    }


def _texts(memory: Json) -> list[Json]:
    """Return what the agent is told of texts from outside: words by strangers, under keys that say so."""
    return [{name: each[name] for name in TOLD_OF_TEXTS if name in each} for each in memory["news"]]
