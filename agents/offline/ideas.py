"""The offline Idea agent: follow-ups of what was measured best, and mechanisms not tried yet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice, product, repeat

from ...factors.space import ACTIVITY, CORE, DRAWN_PRICES, PAIR_OPERATORS, select_fields
from ..memory.diversity import FACTOR_ID, NEAR_HORIZON_RATIO, measure_overlap
from .mechanisms import Mechanism, find_codes, find_mechanism, load_mechanisms
from .prompt_context import Context, DecayingFactor, Json, ShownFormula
from .steering import read_steering

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

MAX_SUCCESSORS = 1
"""Successors in one reply: the record may be long, and new mechanisms are worth more than old ones."""

SKELETON_WORD = re.compile(r"\{?[a-z_]+")

HORIZON_RATIOS = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0, 0.1, 0.05)
"""Horizons of later tries, as multiples of the mechanism's own: each is unlike the others by a factor of two or so."""

MAX_HORIZON_RATIO = 5
"""The longest and shortest horizon that a hypothesis may claim, as a multiple of the one that is scored."""


def propose_ideas(context: Context) -> Json:
    """Return hypotheses: exploit by following up, explore with what is untried, least tried first."""
    request, steering = context.request, read_steering(context)
    count = request.count
    surveying = request.surveying and not steering.wanted  # who is asked for something surveys no language
    share = 0.0 if surveying or request.spent_share < EXPLORING_SPENT_SHARE else EXPLOIT_SHARE
    heirs = propose_successors(context, count)
    leads = _choose_follow_ups(context, round(share * (count - len(heirs))))
    follow = [*heirs, *(_follow_up(context, formula) for formula in leads)]
    fresh = _draw_surveys(context, count - len(follow))
    fresh += [
        _fresh_hypothesis(context, mechanism)
        for mechanism in _choose_mechanisms(context, count - len(follow) - len(fresh))
    ]
    proposed = [body for body in [*follow, *fresh] if steering.permits(body["mechanism"], body["statement"])]
    return {"hypotheses": proposed[:count]}


def _choose_follow_ups(context: Context, count: int) -> list[ShownFormula]:
    """Return what leads on record, then the best, one per mechanism and unlike in structure; each try takes from it."""
    steering, tries, followed = read_steering(context), _tries(context), _followed_ids(context)
    strong = [each for each in context.formulas("record", "factors") if abs(each.t_stat) >= PROMISING_T]
    mechanism = {formula.id: _mechanism_of(context, formula) for formula in strong}
    strong = [
        formula
        for formula in strong
        if steering.permits(mechanism[formula.id]) and formula.id not in followed and not formula.followed
    ]
    worth = {
        formula.id: abs(formula.t_stat)
        - T_LOST_PER_TRY * tries.get(mechanism[formula.id], 0)
        + steering.allure(mechanism[formula.id])
        for formula in strong
    }
    strong.sort(key=lambda formula: (-worth[formula.id], formula.id))
    leading = _rank_leaders(context)[:count]
    chosen: dict[str, ShownFormula] = {}
    for formula in strong:
        others = [*leading, *chosen.values()]
        if len(others) < count and all(_is_unlike(context, formula, other) for other in others):
            chosen.setdefault(_mechanism_of(context, formula), formula)
    return [*leading, *chosen.values()]


def _rank_leaders(context: Context) -> list[ShownFormula]:
    """Return the leaders on record, those first that add most to the others and were followed up least."""
    steering = read_steering(context)
    leaders = [each for each in context.formulas("record", "leaders") if steering.permits(_mechanism_of(context, each))]
    worth = {leader.id: abs(leader.added_t) / (1.0 + leader.followed / FOLLOW_UPS_TO_HALVE) for leader in leaders}
    return sorted(leaders, key=lambda leader: (-worth[leader.id], leader.id))


def _tries(context: Context) -> dict[str, int]:
    """Return how many hypotheses on record name each mechanism."""
    rows = [row for row in context.rows("record", "mechanisms") if isinstance(row, dict)]
    tries = {str(row["mechanism"]): int(row["hypotheses"]) for row in rows}
    return tries or dict(Counter(hypothesis.mechanism for hypothesis in context.hypotheses))


def _followed_ids(context: Context) -> frozenset[str]:
    """Return the formulas that hypotheses on record follow up; one hypothesis of each is enough."""
    return frozenset(FACTOR_ID.findall(" ".join(hypothesis.statement for hypothesis in context.hypotheses)))


def _is_unlike(context: Context, one: ShownFormula, other: ShownFormula) -> bool:
    return measure_overlap(one.text, other.text, context.fields, context.groups) < UNLIKE_OVERLAP


def _draw_surveys(context: Context, count: int) -> list[Json]:
    """Return open surveys among so many fresh hypotheses, each of a few fields and operators.

    They are those of a formula that nobody wrote yet and that is worth a score, where such are told; the rest is drawn.
    """
    steering = read_steering(context)
    known = [each for each in load_mechanisms() if each.open and steering.allows(each)]
    names = select_fields(context.fields)
    wide = [size for size in SURVEY_FIELD_COUNTS if size <= len(names)]
    if not known or not wide or steering.wanted:
        return []
    surveys = []
    share = OPEN_SURVEY_SHARE_WITH_CODE if context.request.python else OPEN_SURVEY_SHARE
    unexplored = [formula.text for formula in context.formulas("record", "unexplored")]
    for text in islice(chain(unexplored, repeat("")), int(context.rng.binomial(count, share))):
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
    pool = [each for each in load_mechanisms() if each.usable(names) and steering.allows(each) and not each.open]
    order = context.rng.permutation(len(pool))
    shuffled = [pool[int(index)] for index in order]
    listed = sorted(
        shuffled,  # where code is taken, what only code can say is worth an early try
        key=lambda each: (
            steering.turn(each, tries.get(each.id, 0)),
            not (context.request.python and find_codes(each.id)),
        ),
    )
    untried = [mechanism for mechanism in listed if mechanism.survey and not tries.get(mechanism.id)]
    surveys = [] if steering.wanted else untried
    lead = surveys[: max(1, round(GENERAL_SURVEY_SHARE * count))] if count else []
    return [*lead, *(mechanism for mechanism in listed if mechanism not in lead)][:count]


def _fresh_hypothesis(context: Context, mechanism: Mechanism) -> Json:
    fields = [name for name in mechanism.fields if name in context.fields]
    variant = choose_variant(mechanism, fields, context.horizon_days, _tries(context).get(mechanism.id, 0))
    body = _hypothesis(context, mechanism, variant.statement, list(variant.fields))
    return {**body, "horizon_days": variant.horizon}


def _follow_up(context: Context, formula: ShownFormula) -> Json:
    """Return a hypothesis that refines what a formula on record found, with the sign that it showed."""
    base = find_mechanism(_mechanism_of(context, formula)) or load_mechanisms()[0]
    agrees = formula.t_stat * base.direction > 0
    said = (
        base.statement if agrees or base.survey else f"The reverse of what is usually said holds here: {base.statement}"
    )
    statement = f"{said} Follow-up of {formula.id}{_name_neighbours(context, formula)}, whose order of stocks was among the strongest on record."
    hypothesis = _hypothesis(context, base, statement, list(context.fields[:MAX_HYPOTHESIS_FIELDS]))
    return {**hypothesis, "direction": 1 if formula.t_stat > 0 else -1, "either_way": True}


def _name_neighbours(context: Context, formula: ShownFormula) -> str:
    """Name two of the formulas that are like it: what is tried next is a change of it, or a crossing with them."""
    neighbours = formula.neighbours
    order = context.rng.permutation(len(neighbours))[:2]
    return f", beside {' and '.join(neighbours[int(at)] for at in sorted(order))}" if neighbours else ""


def _mechanism_of(context: Context, formula: ShownFormula) -> str:
    if formula.mechanism:
        return formula.mechanism
    return next((each.mechanism for each in context.hypotheses if each.id == formula.hypothesis), "")


def _hypothesis(context: Context, mechanism: Mechanism, statement: str, fields: list[str]) -> Json:
    horizon = context.horizon_days
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


def propose_successors(context: Context, count: int) -> list[Json]:
    """Return hypotheses that name the factor which they are to succeed, the longest decaying first; one for each.

    A factor of a mechanism that this researcher does not know has none: it could not say what else to measure.
    """
    words = _stated_words(context)
    due = [factor for factor in context.decaying if factor.id not in words and find_mechanism(factor.mechanism)]
    due.sort(key=lambda factor: (factor.since, factor.id))
    return [_successor(context, factor) for factor in due[: min(MAX_SUCCESSORS, count)]]


def _stated_words(context: Context) -> str:
    """Return the words of hypotheses on record and of refused ones: each decaying factor is taken up once."""
    refused = [row for row in context.rows("record", "refused") if isinstance(row, dict)]
    statements = [*(each.statement for each in context.hypotheses), *(str(row.get("statement", "")) for row in refused)]
    return " ".join(statements)


def _successor(context: Context, factor: DecayingFactor) -> Json:
    base = find_mechanism(factor.mechanism)
    assert base is not None
    horizon = context.horizon_days
    return {
        "mechanism": base.id,
        "statement": f"{base.statement} Successor of {factor.id}, which fades since {factor.since}: the same mechanism in "
        "another measure, that tells more of it than the old one did.",
        "who_is_on_the_other_side": base.other_side,
        "why_it_persists": base.persists,
        "direction": base.direction,
        "horizon_days": min(max(base.horizon, -(-horizon // 5)), 5 * horizon),
        "fields": [name for name in base.fields if name in context.fields],
        "regime": base.regime,
        "refuted_by": f"no formula of it reaches a t of 2 on the search window beyond {factor.id}",
        "succeeds": factor.id,
    }


@dataclass(frozen=True)
class Variant:
    """One way to tell a mechanism: its words, its fields and its horizon in days."""

    statement: str
    fields: tuple[str, ...]
    horizon: int


def choose_variant(mechanism: Mechanism, fields: Sequence[str], horizon: int, tries: int) -> Variant:
    """Return how a mechanism is told after so many tries: whole at first, then by one of its readings at a time.

    Parameters
    ----------
    fields
        The mechanism's fields that the market has and the person allows.
    horizon
        Days that the desk scores.
    """
    whole = Variant(mechanism.statement, tuple(fields), _clamp_days(mechanism.horizon, horizon))
    ways = [(names, days) for days, names in product(_horizons(mechanism, horizon), _readings(mechanism, fields))]
    ways = [way for way in dict.fromkeys(ways) if way != (whole.fields, whole.horizon)]
    if tries == 0 or not ways:
        return whole
    names, days = ways[(tries - 1) % len(ways)]
    said = f"{mechanism.statement} Read here from {', '.join(names)}, over about {days} days."
    return Variant(said, names, days)


def _clamp_days(days: float, horizon: int) -> int:
    return int(min(max(round(days), -(-horizon // MAX_HORIZON_RATIO)), MAX_HORIZON_RATIO * horizon))


def _horizons(mechanism: Mechanism, horizon: int) -> list[int]:
    """Return the mechanism's own horizon and others that are clearly unlike it and each other, within what is allowed."""
    own = _clamp_days(mechanism.horizon, horizon)
    found: list[int] = []
    for days in (_clamp_days(own * rung, horizon) for rung in HORIZON_RATIOS):
        if all(max(days, other) > NEAR_HORIZON_RATIO * min(days, other) for other in found):
            found.append(days)
    return found


def _readings(mechanism: Mechanism, fields: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sets of fields that single skeletons read, in the order of the skeletons; all fields where none is left."""
    kinds = {"{price": DRAWN_PRICES, "{activity": ACTIVITY}
    found = []
    for skeleton in mechanism.skeletons:
        words = SKELETON_WORD.findall(skeleton)
        wanted = {name for word in words for name in kinds.get(word, (word,))}
        found.append(tuple(name for name in fields if name in wanted))
    return list(dict.fromkeys(names for names in found if names)) or [tuple(fields)]
