"""The choice of factors for the gate: few, by search evidence, each unlike the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ...factors.python import is_python
from ..memory.archive import rank_all, recall_marks
from ..memory.diversity import measure_overlap
from ..records import (
    BudgetLeft,
    Mark,
    SearchSheet,
    finite_or_none,
    read_attempt,
    read_mark_hypothesis,
    read_memory,
)
from ..search_context import Json, SearchContext
from .eval_agent import EVAL_AGENT_TOOLS
from .mechanisms import is_mined, state_mechanisms
from .review import is_asked

ALIKE_OVERLAP = 0.7
"""Share of common structure from which the gate would see two formulas as one idea."""

MIN_MEMBERS, MIN_MEMBER_T_SHARE = 2, 0.5
"""Fewest members of a combination, and the share of the best |t| that each must have."""

SAME_PROFILE_DISTANCE = 0.25
MIN_PROFILE_FIGURES = 5
"""Largest distance, as a share, between the yearly and horizon figures of copies, and the fewest figures to compare."""

PLAN_KIND = "tests"
"""Kind under which the journal records the list of tests, fixed from search before the first of them."""

PROVEN_WORDS = frozenset({"accepted", "awaiting approval"})
"""Verdicts on a combination that make its members part of a discovery."""

GATE_TURNS = 5
"""How often one gate may choose again after refusals that cost no trial."""

Alike = Callable[[Mark, Mark], bool]
"""Tests whether two scored formulas are nearly the same."""


async def read_budget(search: SearchContext, key: str) -> BudgetLeft:
    """Return the remaining budget as it was when first read under this key."""
    box = search.tools.select("eval", EVAL_AGENT_TOOLS)
    return BudgetLeft.parse(await search.record_once("budget", key, lambda: box.call("evaluation.get_budget", {})))


def choose_unlike(marks: Sequence[Mark], taken: Sequence[Mark], limit: int, alike: Alike) -> list[Mark]:
    """Return up to `limit` marks in order, without those like one that is taken or chosen."""
    chosen: list[Mark] = []
    for mark in marks:
        if len(chosen) >= limit:
            break
        if not any(mark.id == other.id or alike(mark, other) for other in (*taken, *chosen)):
            chosen.append(mark)
    return chosen


def choose_members(
    leading: Sequence[Mark], marks: Sequence[Mark], sent: Sequence[Mark], limit: int, alike: Alike
) -> list[Mark]:
    """Return the members of a combination: leaders, then the best of each hypothesis, unlike each other and `sent`.

    A member far weaker than the best would add more noise than forecast. Python factors are sent alone, since a
    combination is a formula.
    """
    least = MIN_MEMBER_T_SHARE * max((abs(mark.t) for mark in marks), default=0.0)
    best: dict[str, Mark] = {}
    for mark in marks:
        best.setdefault(mark.branch, mark)
    return choose_unlike([mark for mark in (*leading, *best.values()) if abs(mark.t) >= least], sent, limit, alike)


async def submit(search: SearchContext, chosen: Sequence[str], key: str, *, as_set: bool = False) -> list[str]:
    """Send factors, by id, to the gate, one trial each; as a set, their combination by one trial. Return the words."""
    box = search.tools.select("eval", EVAL_AGENT_TOOLS)
    arguments: Json = {"ids": list(chosen), "key": key, **({"as_set": True} if as_set else {})}
    answer = await search.record_once("submission", key, lambda: box.call("evaluation.submit_to_gate", arguments))
    return [str(row["verdict"]) for row in answer.get("verdicts", ())]


async def spend_trials(
    search: SearchContext, marks: Sequence[Mark], sent: Sequence[Mark], key: str, *, first: bool
) -> list[Mark]:
    """Fix the list of tests from search, record it, and take it in order; return the factors that were sent singly.

    Before the first test the Idea agent states a mechanism for each data-mined factor on the list, where it knows one.
    A campaign without surveys asks before it fixes the list, and tests nothing that has no mechanism.

    With `first` the combination is tested before all single factors: thresholds fall with every test, and it is what
    would be traded. If it is accepted, its members are part of that discovery and are not tested alone. The rest of the
    list follows until the trials are spent or `GATE_TURNS` were taken; a refusal without a test costs no trial.
    """
    plan = await _plan_tests(search, marks, sent, key, first=first)
    listed = list(dict.fromkeys([*plan["combination"], *plan["factors"]]))
    known = {mark.id: mark for mark in rank_all([*marks, *recall_marks(search, listed)])}
    if search.config.survey_share:
        await state_mechanisms(search, [known[name] for name in listed], key)
    members: Sequence[str] = ()
    if len(plan["combination"]) >= MIN_MEMBERS and (await read_budget(search, f"{key}/c")).trials > 0:
        words = await submit(search, plan["combination"], f"{key}/set", as_set=True)
        members = plan["combination"] if PROVEN_WORDS.intersection(words) else ()
    waiting, submitted = [name for name in plan["factors"] if name not in members], list[Mark]()
    for turn in range(GATE_TURNS):
        left = (await read_budget(search, f"{key}/t{turn}")).trials
        chosen, waiting = waiting[:left], waiting[left:]
        if not chosen:
            break
        await submit(search, chosen, f"{key}/t{turn}")
        submitted += [known[name] for name in chosen]
    return submitted


async def _plan_tests(
    search: SearchContext, marks: Sequence[Mark], sent: Sequence[Mark], key: str, *, first: bool
) -> dict[str, list[str]]:
    """Return the ids of the members of the combination and of the factors to test, in order; recorded when first made.

    Leaders precede the strongest: ten of the strongest may be one effect ten times. A leader is sent although it may
    be too weak to be among the remembered ones.
    """
    if recorded := search.journal.read(PLAN_KIND, key):
        return {name: list(recorded[name]) for name in ("combination", "factors")}
    places, ids = await _rank_leaders(search, key), {mark.id for mark in marks}
    marks = rank_all([*marks, *recall_marks(search, (name for name in places if name not in ids))])
    strong = [mark for mark in marks if abs(mark.t) >= search.config.min_search_t]
    worthy = [mark for mark in strong if _shows_its_direction(search, mark) and not is_known(search, mark)]
    most = GATE_TURNS * (await read_budget(search, key)).trials

    def choose(among: Sequence[Mark]) -> tuple[list[Mark], list[Mark]]:
        leading = sorted((mark for mark in among if mark.id in places), key=lambda mark: places[mark.id])
        alike = build_alike_test(search, places)
        members = _choose_formulas(search, leading, among, sent, alike) if first else []
        ordered = [*leading, *(mark for mark in among if mark.id not in places)]
        return members, choose_unlike(ordered, sent, most, alike)

    members, factors = choose(worthy)
    if not search.config.survey_share:
        stated = await state_mechanisms(search, rank_all([*members, *factors]), key)
        members, factors = choose([mark for mark in worthy if mark.id in stated or not is_mined(search, mark)])
    plan = {"combination": [mark.id for mark in members], "factors": [mark.id for mark in factors]}
    search.journal.record(PLAN_KIND, key, plan)
    return plan


def _choose_formulas(
    search: SearchContext, leading: Sequence[Mark], marks: Sequence[Mark], sent: Sequence[Mark], alike: Alike
) -> list[Mark]:
    """Return the members of the combination among those that are formulas."""
    leaders, others = ([mark for mark in part if not _is_code(search, mark)] for part in (leading, marks))
    return choose_members(leaders, others, sent, search.config.set_size, alike)


async def _rank_leaders(search: SearchContext, key: str) -> dict[str, int]:
    """Return the rank of every leader on search when this gate begins, by id."""
    box = search.tools.select("eval", EVAL_AGENT_TOOLS)
    answer = await search.record_once(
        "leaders", key, lambda: box.call("evaluation.list_formulas", {"which": "leaders"})
    )
    return {str(leader["id"]): place for place, leader in enumerate(answer["leaders"])}


def _shows_its_direction(search: SearchContext, mark: Mark) -> bool:
    """Return whether search shows the claimed direction, else the gate refuses it; a survey claims none."""
    hypothesis = read_mark_hypothesis(search.journal, mark)
    return hypothesis.either_way or mark.t * hypothesis.direction > 0


def is_known(search: SearchContext, mark: Mark) -> bool:
    """Return whether a formula is nearly a published or a held one; a person's seeds may be scored all the same."""
    return any(weakness.code == "known" for weakness in read_attempt(search.journal, mark.key).weaknesses)


def _is_code(search: SearchContext, mark: Mark) -> bool:
    return is_python(read_attempt(search.journal, mark.key).text)


def build_alike_test(search: SearchContext, leaders: Collection[str]) -> Alike:
    """Return a test of whether two scored formulas are nearly the same, by structure or by figures year by year.

    A factor that a person wants changed excludes no other. Leaders, by id, were chosen by their values, each for what
    it adds to the others, so equal figures make no copies of them: two strong factors may have them by chance.
    """
    memory = read_memory(search.journal, "r01")

    def alike(one: Mark, other: Mark) -> bool:
        if is_asked(search, other.id):
            return False
        mine, theirs = read_attempt(search.journal, one.key), read_attempt(search.journal, other.key)
        both_lead = one.id in leaders and other.id in leaders
        if not both_lead and profiles_match(mine.sheet, theirs.sheet):
            return True
        return measure_overlap(mine.text, theirs.text, memory.fields, memory.groups) >= ALIKE_OVERLAP

    return alike


def profiles_match(one: SearchSheet, other: SearchSheet) -> bool:
    """Return whether two sheets show one signal: RankIC by year and by horizon nearly equal, up to the sign.

    Two unrelated factors of equal strength differ by the noise of a year's mean, about a third of it; copies hardly
    differ.
    """
    mine, theirs = _list_figures(one), _list_figures(other)
    size = sum(value * value for value in mine.values())
    if not size or mine.keys() != theirs.keys() or len(mine) < MIN_PROFILE_FIGURES:
        return False
    return any(
        sum((mine[k] - sign * theirs[k]) ** 2 for k in mine) < SAME_PROFILE_DISTANCE**2 * size for sign in (1, -1)
    )


def _list_figures(sheet: SearchSheet) -> dict[str, float]:
    """Return a sheet's finite RankIC figures by year and by horizon."""
    tables = {"by_year": sheet.by_year, "decay": sheet.decay}
    figures = {f"{name}/{key}": finite_or_none(value) for name, rows in tables.items() for key, value in rows.items()}
    return {key: value for key, value in figures.items() if value is not None}
