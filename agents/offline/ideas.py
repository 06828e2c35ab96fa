"""The offline Idea agent: follow-ups of the best scored formulas, and mechanisms not tried yet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice, product, repeat

from ...factors.space import ACTIVITY, CORE, DRAWN_PRICES, PAIR_OPERATORS, select_fields
from ..memory.diversity import FACTOR_ID, NEAR_HORIZON_RATIO, measure_overlap
from .likeness import fits_mechanism
from .mechanisms import Mechanism, find_codes, find_mechanism, load_mechanisms
from .prompt_context import Context, DecayingFactor, Json, ShownFormula
from .steering import read_steering

EXPLORING_SPENT_SHARE = 0.2
"""Share of the evaluations for fresh hypotheses alone, before any follow-up; there is none either while the search
surveys."""

EXPLOIT_SHARE = 0.3
"""Share of follow-ups from then on: they refine known results, while faint ones are found by looking elsewhere."""

SURVEY_FIELD_COUNTS, SURVEY_OPERATORS = (3, 4, 5), 7
"""Number of fields and operators of an open survey: few, so that surveys of one round cover different parts of the
language."""

OPEN_SURVEY_SHARE = 0.85
"""Share of open surveys among surveys, while general ones are untried; afterwards all are open."""

FOLLOW_UPS_TO_HALVE = 3
"""Follow-ups of a leader after which another that adds half as much comes first."""

PROMISING_T = 2.5

UNLIKE_OVERLAP = 0.6

T_LOST_PER_TRY = 1.0
"""Deduction from a formula's |t| for each earlier hypothesis of its mechanism, when follow-ups are chosen."""

MAX_HYPOTHESIS_FIELDS = 20

NAME_PATTERN = re.compile(r"[a-z_]+")

MAX_SUCCESSORS = 1
"""Successors in one reply: the record may be long, and new mechanisms are worth more than old ones."""

SKELETON_WORD = re.compile(r"\{?[a-z_]+")

HORIZON_RATIOS = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0, 0.1, 0.05)
"""Horizons of later tries, as multiples of the mechanism's own; neighbours differ by a factor of about two."""

MAX_HORIZON_RATIO = 5
"""The largest ratio, up or down, of a hypothesis' horizon to the scored one."""


def propose_ideas(context: Context) -> Json:
    """Return hypotheses: successors, follow-ups, surveys, and mechanisms, the least tried first."""
    request, steering = context.request, read_steering(context)
    count = request.count
    heirs = propose_successors(context, count)
    leads = _choose_follow_ups(context, round(_find_follow_up_share(context) * (count - len(heirs))))
    follow = [*heirs, *(_make_follow_up(context, formula) for formula in leads)]
    fresh = _draw_surveys(context, count - len(follow))
    fresh += [
        _make_fresh(context, mechanism) for mechanism in _choose_mechanisms(context, count - len(follow) - len(fresh))
    ]
    proposed = [body for body in [*follow, *fresh] if steering.permits(body["mechanism"], body["statement"])]
    return {"hypotheses": proposed[:count]}


def _find_follow_up_share(context: Context) -> float:
    """Return the share of follow-ups: none at first, while the search surveys, or where mechanisms must be new."""
    request = context.request
    surveying = request.surveying and not read_steering(context).wanted  # a person's wish takes precedence
    fresh_alone = surveying or request.unused_only or request.spent_share < EXPLORING_SPENT_SHARE
    return 0.0 if fresh_alone else EXPLOIT_SHARE


def _choose_follow_ups(context: Context, count: int) -> list[ShownFormula]:
    """Return the leaders on record, then the best formulas, one per mechanism and unlike in structure."""
    steering, tries, followed = read_steering(context), _count_tries(context), _find_followed_ids(context)
    strong = [formula for formula in context.formulas("record", "factors") if abs(formula.t_stat) >= PROMISING_T]
    mechanism = {formula.id: _find_mechanism_name(context, formula) for formula in strong}
    strong = [
        formula
        for formula in strong
        if steering.permits(mechanism[formula.id]) and formula.id not in followed and not formula.followed
    ]
    scores = {
        formula.id: abs(formula.t_stat)
        - T_LOST_PER_TRY * tries.get(mechanism[formula.id], 0)
        + steering.allure(mechanism[formula.id])
        for formula in strong
    }
    strong.sort(key=lambda formula: (-scores[formula.id], formula.id))
    leading = _rank_leaders(context)[:count]
    choice: dict[str, ShownFormula] = {}
    for formula in strong:
        others = [*leading, *choice.values()]
        if len(others) < count and all(_is_unlike(context, formula, other) for other in others):
            choice.setdefault(_find_mechanism_name(context, formula), formula)
    return [*leading, *choice.values()]


def _rank_leaders(context: Context) -> list[ShownFormula]:
    """Return the leaders on record; first those that add most to the others and have the fewest follow-ups."""
    steering = read_steering(context)
    leaders = [
        leader
        for leader in context.formulas("record", "leaders")
        if steering.permits(_find_mechanism_name(context, leader))
    ]
    scores = {leader.id: abs(leader.added_t) / (1.0 + leader.followed / FOLLOW_UPS_TO_HALVE) for leader in leaders}
    return sorted(leaders, key=lambda leader: (-scores[leader.id], leader.id))


def _count_tries(context: Context) -> dict[str, int]:
    """Return how many hypotheses on record name each mechanism."""
    rows = [row for row in context.rows("record", "mechanisms") if isinstance(row, dict)]
    tries = {str(row["mechanism"]): int(row["hypotheses"]) for row in rows}
    return tries or dict(Counter(hypothesis.mechanism for hypothesis in context.hypotheses))


def _find_followed_ids(context: Context) -> frozenset[str]:
    """Return the formulas that hypotheses on record follow up; each is followed up once."""
    return frozenset(FACTOR_ID.findall(" ".join(hypothesis.statement for hypothesis in context.hypotheses)))


def _is_unlike(context: Context, one: ShownFormula, other: ShownFormula) -> bool:
    return measure_overlap(one.text, other.text, context.fields, context.groups) < UNLIKE_OVERLAP


def _draw_surveys(context: Context, count: int) -> list[Json]:
    """Return the surveys among so many fresh hypotheses, by the share that the request states."""
    request, steering = context.request, read_steering(context)
    if steering.wanted or request.unused_only:
        return []
    number = int(context.rng.binomial(count, request.survey_share))
    general = _list_general_surveys(context)
    opens = _draw_open_surveys(context, int(context.rng.binomial(number, OPEN_SURVEY_SHARE)) if general else number)
    return [*opens, *(_make_fresh(context, survey) for survey in general[: number - len(opens)])]


def _list_general_surveys(context: Context) -> list[Mechanism]:
    """Return the surveys with skeletons that were not tried yet, in random order."""
    names, tries, steering = (*context.fields, *context.groups), _count_tries(context), read_steering(context)
    surveys = [survey for survey in load_mechanisms() if survey.survey and not survey.open and not tries.get(survey.id)]
    allowed = [survey for survey in surveys if survey.usable(names) and steering.allows(survey)]
    return [allowed[int(place)] for place in context.rng.permutation(len(allowed))]


def _draw_open_surveys(context: Context, count: int) -> list[Json]:
    """Return open surveys, each of a few fields and operators.

    They cover those of an unexplored, promising formula if the context lists one; the rest is drawn at random.
    """
    steering = read_steering(context)
    mechanisms = [mechanism for mechanism in load_mechanisms() if mechanism.open and steering.allows(mechanism)]
    names = select_fields(context.fields)
    wide = [size for size in SURVEY_FIELD_COUNTS if size <= len(names)]
    if not mechanisms or not wide:
        return []
    surveys = []
    unexplored = [formula.text for formula in context.formulas("record", "unexplored")]
    for text in islice(chain(unexplored, repeat("")), count):
        words = NAME_PATTERN.findall(text)
        fields = _choose_names(context, names, int(context.rng.choice(wide)), words)
        operators = _choose_names(context, (*CORE, *PAIR_OPERATORS), SURVEY_OPERATORS, words)
        statement = f"{mechanisms[0].statement} Read here from {', '.join(fields)} by {', '.join(operators)}."
        surveys.append(_make_hypothesis(context, mechanisms[0], statement, fields))
    return surveys


def _choose_names(context: Context, names: Sequence[str], size: int, first: Sequence[str]) -> list[str]:
    """Return `size` names: those in `first`, then others at random."""
    order = [names[int(at)] for at in context.rng.permutation(len(names))]
    return sorted(sorted(order, key=lambda name: name not in first)[:size])


def _choose_mechanisms(context: Context, count: int) -> list[Mechanism]:
    """Return stated mechanisms, the least tried first, ties at random; only new ones if the request asks for them."""
    names = (*context.fields, *context.groups)
    tries = _count_tries(context)
    steering = read_steering(context)
    pool = [
        mechanism
        for mechanism in load_mechanisms()
        if mechanism.usable(names) and steering.allows(mechanism) and not mechanism.survey
    ]
    unused = [mechanism for mechanism in pool if not tries.get(mechanism.id)]
    pool = unused if context.request.unused_only and len(unused) >= count else pool
    order = context.rng.permutation(len(pool))
    shuffled = [pool[int(index)] for index in order]
    ordered = sorted(
        shuffled,  # if code is allowed, mechanisms that need it are tried early
        key=lambda mechanism: (
            steering.turn(mechanism, tries.get(mechanism.id, 0)),
            not (context.request.python and find_codes(mechanism.id)),
        ),
    )
    return ordered[:count]


def _make_fresh(context: Context, mechanism: Mechanism) -> Json:
    fields = [name for name in mechanism.fields if name in context.fields]
    variant = choose_variant(mechanism, fields, context.horizon_days, _count_tries(context).get(mechanism.id, 0))
    body = _make_hypothesis(context, mechanism, variant.statement, list(variant.fields))
    return {**body, "horizon_days": variant.horizon}


def _make_follow_up(context: Context, formula: ShownFormula) -> Json:
    """Return a hypothesis that refines a formula on record, with the sign that it showed.

    It keeps the formula's mechanism where the formula measures it with that sign; otherwise it is a survey.
    """
    name, sign = _find_mechanism_name(context, formula), 1 if formula.t_stat > 0 else -1
    named = find_mechanism(name)
    directed = named.direction if named else sign
    fits = fits_mechanism(formula.text, name, directed, context.fields, context.groups)
    open_survey = next(mechanism for mechanism in load_mechanisms() if mechanism.open)
    base = open_survey if named is None or fits is False else named
    stated = bool(fits) and sign == base.direction
    claim = (
        base.statement if stated or base.survey else f"The reverse of what is on record holds here: {base.statement}"
    )
    statement = (
        f"{claim} Follow-up of {formula.id}{_name_neighbours(context, formula)}, "
        "whose order of stocks was among the strongest on record."
    )
    read = {*base.fields, *NAME_PATTERN.findall(formula.text)} if stated else {*context.fields}
    fields = [name for name in context.fields if name in read]
    hypothesis = _make_hypothesis(context, base, statement, fields[:MAX_HYPOTHESIS_FIELDS])
    return {**hypothesis, "direction": sign, "either_way": not stated}


def _name_neighbours(context: Context, formula: ShownFormula) -> str:
    """Return words that name two neighbours of a formula: the next formulas change it, or cross it with them."""
    neighbours = formula.neighbours
    order = context.rng.permutation(len(neighbours))[:2]
    return f", beside {' and '.join(neighbours[int(at)] for at in sorted(order))}" if neighbours else ""


def _find_mechanism_name(context: Context, formula: ShownFormula) -> str:
    if formula.mechanism:
        return formula.mechanism
    return next((hypothesis.mechanism for hypothesis in context.hypotheses if hypothesis.id == formula.hypothesis), "")


def _make_hypothesis(context: Context, mechanism: Mechanism, statement: str, fields: list[str]) -> Json:
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
        "refuted_by": _describe_refutation(mechanism),
    }


def _describe_refutation(mechanism: Mechanism) -> str:
    """Return what would refute a hypothesis, in words; a survey is refuted by weak scores alone."""
    if not mechanism.refuter:
        return "no formula of it reaches a t of 3 on the search window, or most show the opposite sign"
    return f"beside {mechanism.refuter} no formula of it keeps a |t| of 2 on the search window, or the sign is opposite"


def propose_successors(context: Context, count: int) -> list[Json]:
    """Return hypotheses that name the decaying factor they succeed, the longest decaying first; one for each.

    A factor whose mechanism this researcher does not know has none: there is no other measure to propose.
    """
    words = _join_statements(context)
    factors = [factor for factor in context.decaying if factor.id not in words and find_mechanism(factor.mechanism)]
    factors.sort(key=lambda factor: (factor.since, factor.id))
    return [_make_successor(context, factor) for factor in factors[: min(MAX_SUCCESSORS, count)]]


def _join_statements(context: Context) -> str:
    """Return the statements of recorded and refused hypotheses: each decaying factor is succeeded once."""
    refused = [row for row in context.rows("record", "refused") if isinstance(row, dict)]
    statements = [
        *(hypothesis.statement for hypothesis in context.hypotheses),
        *(str(row.get("statement", "")) for row in refused),
    ]
    return " ".join(statements)


def _make_successor(context: Context, factor: DecayingFactor) -> Json:
    base = find_mechanism(factor.mechanism)
    assert base is not None
    horizon = context.horizon_days
    return {
        "mechanism": base.id,
        "statement": f"{base.statement} Successor of {factor.id}, which fades since {factor.since}: "
        "the same mechanism in another measure, that tells more of it than the old one did.",
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
    """One way to state a mechanism: its words, its fields and its horizon in days."""

    statement: str
    fields: tuple[str, ...]
    horizon: int


def choose_variant(mechanism: Mechanism, fields: Sequence[str], horizon: int, tries: int) -> Variant:
    """Return a mechanism's variant after so many tries: the whole first, then one reading at a time.

    Parameters
    ----------
    fields
        The mechanism's fields that the market has and the person allows.
    horizon
        Days over which factors are scored.
    """
    whole = Variant(mechanism.statement, tuple(fields), _clamp_days(mechanism.horizon, horizon))
    ways = [
        (names, days) for days, names in product(_list_horizons(mechanism, horizon), _list_readings(mechanism, fields))
    ]
    ways = [way for way in dict.fromkeys(ways) if way != (whole.fields, whole.horizon)]
    if tries == 0 or not ways:
        return whole
    names, days = ways[(tries - 1) % len(ways)]
    statement = f"{mechanism.statement} Read here from {', '.join(names)}, over about {days} days."
    return Variant(statement, names, days)


def _clamp_days(days: float, horizon: int) -> int:
    return int(min(max(round(days), -(-horizon // MAX_HORIZON_RATIO)), MAX_HORIZON_RATIO * horizon))


def _list_horizons(mechanism: Mechanism, horizon: int) -> list[int]:
    """Return the mechanism's horizon and others that differ clearly from it and from each other, within the bounds."""
    own = _clamp_days(mechanism.horizon, horizon)
    horizons: list[int] = []
    for days in (_clamp_days(own * rung, horizon) for rung in HORIZON_RATIOS):
        if all(max(days, known_days) > NEAR_HORIZON_RATIO * min(days, known_days) for known_days in horizons):
            horizons.append(days)
    return horizons


def _list_readings(mechanism: Mechanism, fields: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sets of fields that single skeletons read, in their order; all fields if there are none."""
    kinds = {"{price": DRAWN_PRICES, "{activity": ACTIVITY}
    readings = []
    for skeleton in mechanism.skeletons:
        words = SKELETON_WORD.findall(skeleton)
        reads = {name for word in words for name in kinds.get(word, (word,))}
        readings.append(tuple(name for name in fields if name in reads))
    return list(dict.fromkeys(names for names in readings if names)) or [tuple(fields)]
