"""The offline Idea agent: follow-ups of what was measured best, and mechanisms not tried yet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, islice, repeat
from typing import Any

from ...factors.space import CORE, PAIR_OPERATORS, select_fields
from ..memory.diversity import FACTOR_ID
from ..memory.structure import overlap
from .codes import codes_of
from .mechanism import Mechanism, find_mechanism, mechanisms
from .reading import Context, Json
from .steering import read_steering
from .succession import propose_successors
from .variants import choose_variant

EXPLORING_SPENT_SHARE = 0.2
"""Share of the evaluations that goes to fresh hypotheses alone, before anything is followed up, and as long as
the search surveys.
"""
EXPLOIT_SHARE = 0.3
"""Share of follow-ups from then on: they polish what was found, and what is faint is found by looking elsewhere."""
SURVEY_FIELD_COUNTS, SURVEY_OPERATORS = (3, 4, 5), 7
"""How many fields and operators an open survey is about: a few, so that surveys of one round look in different places."""
OPEN_SURVEY_SHARE, OPEN_SURVEY_SHARE_WITH_CODE = 0.85, 0.4
"""Share of open surveys among fresh hypotheses: what nobody thought of is in no library of mechanisms. Fewer where agents may
write Python: code says what a mechanism says, and no survey has any.
"""
FOLLOW_UPS_TO_HALVE = 3
"""Follow-ups of a leader after which another that adds half as much comes first."""
PROMISING_T = 2.5
UNLIKE_OVERLAP = 0.6
T_LOST_PER_TRY = 1.0
"""What each earlier hypothesis of a mechanism takes from the |t| of its formulas when follow-ups are chosen."""
GENERAL_SURVEY_SHARE = 0.8
MAX_HYPOTHESIS_FIELDS = 20
NAME_PATTERN = re.compile(r"[a-z_]+")


def propose_ideas(context: Context) -> Json:
    """Return hypotheses: exploit by following up, explore with what is untried, least tried first."""
    count = context.count
    request, steering = context.part("request"), read_steering(context)
    surveying = request.get("surveying") and not steering.wanted  # who is asked for something surveys no language
    share = 0.0 if surveying or float(request.get("spent", 1.0)) < EXPLORING_SPENT_SHARE else EXPLOIT_SHARE
    heirs = propose_successors(context, count)
    follow = [_follow_up(context, row) for row in _choose_follow_ups(context, round(share * (count - len(heirs))))]
    follow = [*heirs, *follow]
    fresh = _draw_surveys(context, count - len(follow))
    fresh += [
        _fresh_hypothesis(context, mechanism)
        for mechanism in _choose_mechanisms(context, count - len(follow) - len(fresh))
    ]
    said = [each for each in [*follow, *fresh] if steering.permits(each["mechanism"], each["statement"])]
    return {"hypotheses": said[:count]}


def _choose_follow_ups(context: Context, count: int) -> list[Json]:
    """Return what leads on record, then the best, one per mechanism and unlike in structure; each try takes from it."""
    steering, tries = read_steering(context), _tries(context)
    rows = [row for row in context.rows("record", "factors") if isinstance(row, dict)]
    strong = [row for row in rows if abs(float(row.get("t") or 0.0)) >= PROMISING_T]
    of = {row["id"]: _mechanism_of(context, row) for row in strong}
    strong = [
        row
        for row in strong
        if steering.permits(of[row["id"]]) and row["id"] not in _followed_ids(context) and not row.get("followed")
    ]
    worth = {
        row["id"]: abs(float(row["t"])) - T_LOST_PER_TRY * tries.get(of[row["id"]], 0) + steering.allure(of[row["id"]])
        for row in strong
    }
    strong.sort(key=lambda row: (-worth[row["id"]], str(row["id"])))
    leading = _rank_leaders(context)[:count]
    chosen: dict[str, Json] = {}
    for row in strong:
        others = [*leading, *chosen.values()]
        if len(others) < count and all(_is_unlike(context, row, other) for other in others):
            chosen.setdefault(_mechanism_of(context, row), row)
    return [*leading, *chosen.values()]


def _rank_leaders(context: Context) -> list[Json]:
    """Return the leaders on record, those first that add most to the others and were followed up least."""
    steering = read_steering(context)
    rows = [row for row in context.rows("record", "leaders") if isinstance(row, dict)]
    rows = [row for row in rows if steering.permits(_mechanism_of(context, row))]
    worth = {
        row["id"]: abs(float(row.get("beside") or 0.0)) / (1.0 + int(row.get("followed", 0)) / FOLLOW_UPS_TO_HALVE)
        for row in rows
    }
    return sorted(rows, key=lambda row: (-worth[row["id"]], str(row["id"])))


def _tries(context: Context) -> dict[str, int]:
    """Return how many hypotheses on record name each mechanism."""
    told = [row for row in context.rows("record", "mechanisms") if isinstance(row, dict)]
    tries: dict[str, int] = {str(row["mechanism"]): int(row["hypotheses"]) for row in told}
    if tries:
        return tries
    for row in context.rows("record", "hypotheses"):
        mechanism = str(row.get("mechanism", "")) if isinstance(row, dict) else ""
        tries[mechanism] = tries.get(mechanism, 0) + 1
    return tries


def _followed_ids(context: Context) -> frozenset[str]:
    """Return the formulas that hypotheses on record follow up; one hypothesis of each is enough."""
    rows = context.rows("record", "hypotheses")
    said = " ".join(str(row.get("statement", "")) for row in rows if isinstance(row, dict))
    return frozenset(FACTOR_ID.findall(said))


def _is_unlike(context: Context, one: Json, other: Json) -> bool:
    return overlap(str(one["text"]), str(other["text"]), context.fields, context.groups) < UNLIKE_OVERLAP


def _draw_surveys(context: Context, count: int) -> list[Json]:
    """Return open surveys among so many fresh hypotheses, each of a few fields and operators.

    They are those of a formula that nobody wrote yet and that is worth a score, where such are told; the rest is drawn.
    """
    steering = read_steering(context)
    known = [each for each in mechanisms() if each.open and steering.allows(each)]
    names = select_fields(context.fields)
    wide = [size for size in SURVEY_FIELD_COUNTS if size <= len(names)]
    if not known or not wide or steering.wanted:
        return []
    surveys = []
    share = OPEN_SURVEY_SHARE_WITH_CODE if context.part("request").get("python") else OPEN_SURVEY_SHARE
    told = [str(row.get("text", "")) for row in context.rows("record", "unexplored") if isinstance(row, dict)]
    for text in islice(chain(told, repeat("")), int(context.rng.binomial(count, share))):
        words = NAME_PATTERN.findall(text)
        chosen = _choose_names(context, names, int(context.rng.choice(wide)), words)
        by = _choose_names(context, (*CORE, *PAIR_OPERATORS), SURVEY_OPERATORS, words)
        said = f"{known[0].statement} Read here from {', '.join(chosen)} by {', '.join(by)}."
        surveys.append(_hypothesis(context, known[0], said, chosen))
    return surveys


def _choose_names(context: Context, names: Sequence[str], size: int, first: Sequence[str]) -> list[str]:
    """Return so many of the names, those said first among them, the others drawn at random."""
    drawn = [names[int(at)] for at in context.rng.permutation(len(names))]
    return sorted(sorted(drawn, key=lambda name: name not in first)[:size])


def _choose_mechanisms(context: Context, count: int) -> list[Mechanism]:
    """Return mechanisms, least tried first and at random among those; the first rounds begin with surveys."""
    names = (*context.fields, *context.groups)
    tries = _tries(context)
    steering = read_steering(context)
    pool = [each for each in mechanisms() if each.usable(names) and steering.allows(each) and not each.open]
    order = context.rng.permutation(len(pool))
    shuffled = [pool[int(index)] for index in order]
    told = bool(context.part("request").get("python"))  # then what only code can say is worth an early try
    listed = sorted(
        shuffled, key=lambda each: (steering.turn(each, tries.get(each.id, 0)), not (told and codes_of(each.id)))
    )
    untried = [mechanism for mechanism in listed if mechanism.survey and not tries.get(mechanism.id)]
    surveys = [] if steering.wanted else untried
    lead = surveys[: max(1, round(GENERAL_SURVEY_SHARE * count))] if count else []
    return [*lead, *(mechanism for mechanism in listed if mechanism not in lead)][:count]


def _fresh_hypothesis(context: Context, mechanism: Mechanism) -> Json:
    fields = [name for name in mechanism.fields if name in context.fields]
    horizon = int(context.part("market").get("horizon_days", 5))
    told = choose_variant(mechanism, fields, horizon, _tries(context).get(mechanism.id, 0))
    said = _hypothesis(context, mechanism, told.statement, list(told.fields))
    return {**said, "horizon_days": told.horizon}


def _follow_up(context: Context, row: Json) -> Json:
    """Return a hypothesis that refines what a formula on record found, with the sign that it showed."""
    base = find_mechanism(_mechanism_of(context, row)) or mechanisms()[0]
    agrees = float(row["t"]) * base.direction > 0
    said = (
        base.statement if agrees or base.survey else f"The reverse of what is usually said holds here: {base.statement}"
    )
    statement = f"{said} Follow-up of {row['id']}{_name_neighbours(context, row)}, whose order of stocks was among the strongest on record."
    hypothesis = _hypothesis(context, base, statement, list(context.fields[:MAX_HYPOTHESIS_FIELDS]))
    return {**hypothesis, "direction": 1 if float(row["t"]) > 0 else -1, "either_way": True}


def _name_neighbours(context: Context, row: Json) -> str:
    """Name two of the formulas that are like it: what is tried next is a change of it, or a crossing with them."""
    kin = [str(each["id"]) for each in row.get("kin", []) if isinstance(each, dict)]
    order = context.rng.permutation(len(kin))[:2]
    return f", beside {' and '.join(kin[int(at)] for at in sorted(order))}" if kin else ""


def _mechanism_of(context: Context, row: Json) -> str:
    if row.get("mechanism"):
        return str(row["mechanism"])
    rows: list[Any] = context.rows("record", "hypotheses")
    return next((str(h["mechanism"]) for h in rows if isinstance(h, dict) and h.get("id") == row.get("hypothesis")), "")


def _hypothesis(context: Context, mechanism: Mechanism, statement: str, fields: list[str]) -> Json:
    horizon = int(context.part("market").get("horizon_days", 5))
    return {
        "mechanism": mechanism.id,
        "statement": statement,
        "who_is_on_the_other_side": mechanism.other_side,
        "why_it_persists": mechanism.persists,
        "direction": mechanism.direction,
        "horizon_days": min(max(mechanism.horizon, -(-horizon // 5)), 5 * horizon),
        "fields": fields,
        "regime": mechanism.regime,
        "either_way": mechanism.survey,
        "refuted_by": "no formula of it reaches a t of 3 on the search window, or most show the opposite sign",
    }
