"""The search graph: ideas become formulas, which are scored, criticised and changed; the best go to the gate.

The state holds keys, ids and small scores; everything else is in the journal. Branches ask their models concurrently
and are scored one after another in the order of their keys, so no result depends on which model answered first. Every
node reads the journal before it works, so a node that runs again repeats nothing.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast

from .memory.archive import SearchArchive, place_in_niches, rank_all
from .memory.operator_outcomes import record_operators
from .nodes import eval_agent, factor_agent, idea_agent, review, shortlist
from .questions import AnswerPlace, BranchBarrier
from .records import Mark, Work, rank_marks, read_memory
from .search_context import CheckpointPlace, Json, SearchContext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langgraph.graph import StateGraph

BEST_PER_BRANCH = 6
"""Formulas of a branch that the state remembers; `archive` says how many of the campaign."""

BEYOND_REPAIR = ("duplicate", "budget")
"""Stages of refusals that no other spelling of the formula would cure."""

Marks = list[list[Any]]
"""Marks as a checkpoint stores them: lists of t, id, key and niche."""

START_STATE: State = {
    "round": 0,
    "step": 0,
    "attempt": 0,
    "quota": {},
    "results": {},
    "best": {},
    "elite": [],
    "round_elite": [],
    "refused": {},
    "sent": [],
    "ended": "",
    "finished": False,
    "seeded": 0,
    "proposed": 0,
    "waiting": [],
    "asked": [],
}


def merge_by_key(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
    """Merge the branches' results, sorted by key and not by arrival; only the latest round is kept."""
    merged = {**old, **new}
    latest = max((review.parse_round(key.split("/")[0]) for key in merged), default=0)
    return {key: merged[key] for key in sorted(merged) if review.parse_round(key.split("/")[0]) == latest}


class State(TypedDict, total=False):
    """The state that a checkpoint stores."""

    round: int
    step: int
    attempt: int
    quota: dict[str, int]
    results: Annotated[dict[str, int], merge_by_key]
    best: dict[str, Marks]
    elite: Marks
    round_elite: Marks
    refused: dict[str, list[str]]
    sent: Marks
    ended: str
    finished: bool
    seeded: int
    proposed: int
    waiting: list[str]
    asked: list[str]


def divide_evaluations(branches: list[str], evaluations: int, per_branch: int) -> dict[str, int]:
    """Divide the remaining evaluations among branches before they start; the first get the remainder."""
    if not branches:
        return {}
    share, remainder = divmod(evaluations, len(branches))
    return {branch: min(per_branch, share + (index < remainder)) for index, branch in enumerate(branches)}


async def seeds_node(search: SearchContext, state: State) -> State:
    """Score the next of the person's own formulas, which may be parents of any other."""
    start = state.get("seeded", 0)
    marks = await factor_agent.score_seeds(search, start)
    elite = SearchArchive.of(search.config).keep([*restore_marks(state["elite"]), *marks])
    seeded = min(start + factor_agent.SEEDS_PER_STEP, len(search.own.seeds))
    search.progress("seeds", {"scored": seeded, "of": len(search.own.seeds)})
    return {"elite": dump_marks(elite), "seeded": seeded}


async def idea_node(search: SearchContext, state: State) -> State:
    """Begin a round: recall, reopen returned hypotheses, propose new ones, and fix each branch's quota."""
    number, ended = state["round"] + 1, search.ended()
    evaluations = 0 if ended else (await shortlist.read_budget(search, f"r{number:02d}/start")).evaluations
    per_branch = search.config.candidates * (search.config.steps + 1)
    limit = max(1, min(search.config.hypotheses, -(-evaluations // per_branch))) if evaluations > 0 else 0
    requests = review.open_branches(search, state.get("asked", []) if evaluations > 0 else [], f"r{number:02d}")
    marks, proposed = rank_all(restore_marks([*state["sent"], *state["elite"]])), state.get("proposed", 0)
    best = {
        branch: dump_marks(review.find_parents(search, state.get("asked", []), marks, old))
        for branch, old in requests.items()
    }
    count = (
        max(0, min(limit - len(requests), count_new_hypotheses(search, proposed)))
        if number <= search.config.rounds
        else 0
    )
    branches, spent = await idea_agent.propose_hypotheses(search, number, count) if requests or count > 0 else ([], "")
    total = len(requests) + len(branches)
    surveying = read_memory(search.journal, f"r{number:02d}").surveying
    figures = {"round": number, "hypotheses": total, "evaluations_left": evaluations}
    search.progress("survey" if surveying else "round", figures)
    return {
        "round": number,
        "step": 0,
        "attempt": 0,
        "quota": divide_evaluations([*requests, *branches], evaluations, per_branch),
        "best": best,
        "round_elite": state["elite"],
        "refused": {},
        "ended": ended or spent,
        "proposed": proposed + len(branches),
        "asked": [],
    }


def count_new_hypotheses(search: SearchContext, proposed: int) -> int:
    """Return how many new hypotheses the budget allows in a round."""
    limit = search.config.hypotheses if search.most_hypotheses is None else search.most_hypotheses - proposed
    return max(0, min(search.config.hypotheses, limit))


async def factor_node(search: SearchContext, barrier: BranchBarrier, work: Json) -> State:
    """Draft or repair one branch's formulas."""
    piece = restore_work(work)
    place = AnswerPlace("drafts", piece.key, [replace(piece, branch=branch).key for branch in work.get("beside", [])])
    drafted = await barrier.ask_branch(place, lambda: factor_agent.draft_formulas(search, piece), {"items": []})
    return {"results": {piece.key: len(drafted["items"])}}


async def score_node(search: SearchContext, state: State) -> State:
    """Choose among the branches' drafts and score them, one branch after another in the order of their keys."""
    quota, best, ended = dict(state["quota"]), dict(state["best"]), state["ended"] or search.ended()
    archive, candidates, refused = (
        SearchArchive.of(search.config),
        restore_marks(state["elite"]),
        dict[str, list[str]](),
    )
    for branch in sorted(quota):
        work = build_work(search, state, branch)
        if work.key not in state["results"]:
            continue
        proposal = await factor_agent.choose_formulas(search, work)
        ended = ended or proposal.ended
        attempts = [await factor_agent.score_formula(search, branch, item) for item in proposal.items]
        marks = place_in_niches(search, branch, attempts)
        quota[branch] = 0 if proposal.given_up else quota[branch] - len(marks)
        strongest = rank_marks([*restore_marks(best.get(branch, [])), *marks], BEST_PER_BRANCH)
        best[branch], candidates = dump_marks(strongest), [*candidates, *archive.found(strongest, marks)]
        refusals = [(attempt.key, attempt.refusal) for attempt in attempts]
        refused[branch] = [key for key, refusal in refusals if refusal and refusal.stage not in BEYOND_REPAIR]
    elite = archive.keep(candidates)
    search.progress(
        "scored", {"round": state["round"], "step": state["step"], "best_t": abs(elite[0].t) if elite else None}
    )
    repairs = {branch: keys for branch, keys in refused.items() if keys}
    return {"quota": quota, "best": best, "elite": dump_marks(elite), "refused": repairs, "ended": ended}


async def repair_node(_search: SearchContext, state: State) -> State:
    """Count one more attempt before the refused formulas are returned with their errors."""
    return {"attempt": state["attempt"] + 1}


async def critique_node(search: SearchContext, barrier: BranchBarrier, work: Json) -> State:
    """Criticise one branch: the result 1 continues it, 0 ends it."""
    piece = restore_work(work)
    key = f"{piece.branch}/s{piece.step}"
    place = AnswerPlace("critique", key, [f"{branch}/s{piece.step}" for branch in work.get("beside", [])])
    reply = await barrier.ask_branch(place, lambda: eval_agent.criticise_formulas(search, piece), {})
    return {"results": {f"{key}/critique": int(reply.get("keep", False))}}


async def turn_node(search: SearchContext, state: State) -> State:
    """Begin the next step with the branches that their critique continues."""
    quota, ended = {}, state["ended"] or search.ended()
    for branch, left in state["quota"].items():
        key = f"{branch}/s{state['step']}"
        keep = state["results"].get(f"{key}/critique", 0)
        ended = ended or (search.journal.read("critique", key) or {}).get("ended", "")
        quota[branch] = left if keep else 0
    return {"step": state["step"] + 1, "attempt": 0, "quota": quota, "refused": {}, "ended": ended}


async def gate_node(search: SearchContext, state: State) -> State:
    """Record the outcomes of operators; when the search ends, send the combination and then the best to the gate.

    No selection day is read before the search ends. A verdict leads to another formula only where a person asks for it.
    """
    record_operators(search, state["round"])
    key = f"r{state['round']:02d}/gate"
    budget = await shortlist.read_budget(search, key)
    submitted, ended = restore_marks(state["sent"]), state["ended"] or name_spent_budget(search, state)
    closing = bool(state["round"] >= search.config.rounds or budget.evaluations <= 0 or ended)
    if not closing:
        return {"ended": ended}
    first = state["round"] <= search.config.rounds  # later rounds are those that a person asked for
    submissions = await shortlist.spend_trials(search, restore_marks(state["elite"]), submitted, key, first=first)
    waiting = review.list_waiting(search, key, shortlist.GATE_TURNS)
    search.progress("gate", {"round": state["round"], "sent": [mark.id for mark in submissions], "closing": True})
    return {"sent": dump_marks([*submitted, *submissions]), "finished": True, "ended": ended, "waiting": waiting}


def name_spent_budget(search: SearchContext, state: State) -> str:
    """Return why the budget of hypotheses ends the search before its rounds do, or an empty string."""
    limit = search.most_hypotheses
    if limit is None or state.get("proposed", 0) < limit or state["round"] >= search.config.rounds:
        return ""
    done, rounds = state["round"], search.config.rounds
    return f"budget.hypotheses: all {limit:,} hypotheses were proposed in {done} of {rounds} rounds"


async def review_node(search: SearchContext, state: State) -> State:
    """Take over a person's decisions; a factor to be changed gets one more round, while the budget allows it."""
    requests = review.take_decisions(search, state["waiting"], state["round"] + 1)
    budget = await shortlist.read_budget(search, f"r{state['round']:02d}/review")
    goes_on = bool(requests and budget.evaluations > 0 and budget.trials > 0 and not state["ended"])
    return {"waiting": [], "asked": requests, "finished": state["finished"] and not goes_on}


def after_seeds(search: SearchContext, state: State) -> str:
    """Continue with the seeds until all are scored or the search ends."""
    finished = state.get("seeded", 0) >= len(search.own.seeds) or bool(search.ended())
    return "idea" if finished else "seeds"


def after_idea(search: SearchContext, state: State) -> Any:
    """Fan out over the hypotheses; without any, go to the gate."""
    return fan_out(search, state, "factor") or "gate"


def after_score(search: SearchContext, state: State) -> Any:
    """Repair the refused formulas, else criticise, else go to the gate."""
    if state["ended"]:
        return "gate"
    if state["refused"] and state["attempt"] < search.config.repairs:
        return "repair"
    if state["step"] < search.config.steps:
        return fan_out(search, state, "critique") or "gate"
    return "gate"


def after_repair(search: SearchContext, state: State) -> Any:
    """Fan out over the branches with refused formulas."""
    return fan_out(search, {**state, "quota": {b: state["quota"][b] for b in state["refused"]}}, "factor") or "score"


def after_turn(search: SearchContext, state: State) -> Any:
    """Fan out over the branches that continue; without any, go to the gate."""
    return "gate" if state["ended"] else fan_out(search, state, "factor") or "gate"


def after_gate(state: State) -> str:
    """Go to the review where factors wait for a person, to the next round, or to the end."""
    from langgraph.graph import END

    if state.get("waiting"):
        return "review"
    return END if state["finished"] else "idea"


def fan_out(search: SearchContext, state: State, node: str) -> list[Any]:
    """Return one piece of work per branch with evaluations left; its inputs are fixed here, before the step begins.

    From other branches it contains the leaders at the start of the round, at all its steps, so that its prompts begin
    alike.
    """
    from langgraph.types import Send

    pieces, archive, elite = (
        [],
        SearchArchive.of(search.config),
        restore_marks(state.get("round_elite", state["elite"])),
    )
    for branch in sorted(state["quota"]):
        piece = build_work(search, state if node == "factor" else {**state, "refused": {}}, branch)
        if piece.count > 0:
            leaders = archive.show(elite, branch, factor_agent.MAX_ELITE_SHOWN)
            pieces.append(
                vars(piece)
                | {"best": dump_marks(piece.best), "elite": dump_marks(leaders), "refused": [*piece.refused]}
            )
    beside = [piece["branch"] for piece in pieces]
    return [Send(node, {**piece, "beside": beside}) for piece in pieces]


def build_work(search: SearchContext, state: State, branch: str) -> Work:
    """Return one branch's piece of work at this point of the search, without the formulas of other branches."""
    refused = state["refused"].get(branch, [])
    count = min(state["quota"][branch], len(refused) or search.config.candidates)
    best = tuple(restore_marks(state["best"].get(branch, [])))
    return Work(branch, state["step"], state["attempt"], count, best, refused=tuple(refused[:count]))


def restore_work(work: Json) -> Work:
    """Return a piece of work from its checkpoint."""
    lists = {
        "best": tuple(restore_marks(work["best"])),
        "elite": tuple(restore_marks(work["elite"])),
        "refused": tuple(work["refused"]),
    }
    return Work(work["branch"], work["step"], work["attempt"], work["count"], **lists)


def restore_marks(rows: Marks) -> list[Mark]:
    """Return marks from their checkpoint."""
    return [Mark(*row) for row in rows]


def dump_marks(marks: Iterable[Mark]) -> Marks:
    """Return marks as a checkpoint stores them."""
    return [list(mark) for mark in marks]


def build_graph(search: SearchContext) -> StateGraph[State]:
    """Return the graph of one campaign."""
    from langgraph.graph import START, StateGraph

    graph, barrier = StateGraph(State), BranchBarrier(search)
    for name, node in {
        "seeds": seeds_node,
        "idea": idea_node,
        "score": score_node,
        "repair": repair_node,
        "turn": turn_node,
        "gate": gate_node,
        "review": review_node,
    }.items():
        graph.add_node(name, partial(node, search))
    for name, branch in {"factor": factor_node, "critique": critique_node}.items():
        graph.add_node(name, partial(branch, search, barrier))
    graph.add_conditional_edges(START, partial(after_seeds, search), ["seeds", "idea"])
    graph.add_conditional_edges("seeds", partial(after_seeds, search), ["seeds", "idea"])
    graph.add_conditional_edges("idea", partial(after_idea, search), ["factor", "gate"])
    graph.add_edge("factor", "score")
    graph.add_conditional_edges("score", partial(after_score, search), ["repair", "critique", "gate"])
    graph.add_conditional_edges("repair", partial(after_repair, search), ["factor", "score"])
    graph.add_edge("critique", "turn")
    graph.add_conditional_edges("turn", partial(after_turn, search), ["factor", "gate"])
    graph.add_conditional_edges("gate", after_gate)
    graph.add_conditional_edges("review", after_gate)
    return graph


async def run_graph(search: SearchContext, checkpoints: CheckpointPlace, thread_id: str, resume: bool = False) -> State:
    """Run a campaign's rounds to their end and return the last state.

    With `resume`, an interrupted thread continues from its last checkpoint; a finished one returns its state. A run
    that `halted` stops returns the state at that moment, which is not `finished`.
    """
    # Set before the import: langgraph reads them once. Checkpoints hold plain data only; no tracing service is called.
    os.environ.update(LANGGRAPH_STRICT_MSGPACK="true", LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false")
    from .checkpoints import open_checkpoints

    steps = search.config.rounds * ((search.config.steps + 1) * (4 + 3 * search.config.repairs) + 4) + 10
    steps += len(search.own.seeds) // factor_agent.SEEDS_PER_STEP + 1
    config: Any = {
        "configurable": {"thread_id": thread_id},
        "recursion_limit": steps,
    }
    async with open_checkpoints(checkpoints) as saver:
        compiled = build_graph(search).compile(checkpointer=saver)
        started = await saver.aget_tuple(config) if resume else None
        if started is None:
            await saver.adelete_thread(thread_id)
            await compiled.ainvoke(START_STATE, config, interrupt_after="*", durability="sync")
        # One super-step at a time: between two of them everything is on the disk, so a run may halt there. The
        # condition is `tasks` and not `next`, which omits nodes that have returned: after a kill between the last
        # return of a step and its checkpoint, `next` is empty although the step is not done.
        while (snapshot := await compiled.aget_state(config)).tasks and not search.halted():
            await compiled.ainvoke(None, config, interrupt_after="*", durability="sync")
        return cast("State", snapshot.values)


@contextmanager
def silence_interruption() -> Iterator[None]:
    """Suppress Python's warnings when an interruption (Ctrl-C) ends a search.

    litellm calls a model in a thread and awaits it in the loop, and the checkpoint file answers from its own thread.
    An interruption drops both; Python would then print a coroutine that was never awaited and a thread that answers a
    closed loop.
    """
    hook = threading.excepthook

    def report(failed: threading.ExceptHookArgs) -> None:
        if not (isinstance(failed.exc_value, RuntimeError) and "loop is closed" in str(failed.exc_value)):
            hook(failed)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        threading.excepthook = report
        try:
            yield
        finally:
            threading.excepthook = hook
