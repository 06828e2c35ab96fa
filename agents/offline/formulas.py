"""The offline Factor agent: skeletons first, then changes of the best formulas along the critique."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ...factors import Expression, FactorError, Node, express, normalise_unchecked, parse
from ...factors.space import sample_plain, select_fields
from ..memory.operator_outcomes import MUTATION_PREFIX, NO_WEAKNESS
from ..records import DATA_MINED
from .critique import CURES
from .likeness import is_instance, is_quantity
from .mechanisms import Mechanism, fill_skeleton, find_codes, find_mechanism, load_mechanisms
from .mutations import CHANGE_WEIGHTS, CHANGES, DIRECTED_CHANGES, Bandit, ChangeMaterial, invert, is_plain
from .prompt_context import Context, Json, ShownFormula

TRIES_PER_FORMULA = 60
SKELETON_DRAWS = 80
MIN_BREEDING_T = 1.5
MIN_SURVEY_BREEDING_T = 5.0
DIRECTED_SHARE = 0.3
ELITE_SHARE = 0.2
ORDER_DECAY = 0.6
MAX_BEST_PARENTS = 6
"""How many of the branch's own formulas are parents."""
BRED_SHARE, FEW_CANDIDATES = 0.9, 10
"""Share of many drafts that are changes of scored formulas; the rest are fresh, and a forecast chooses among both."""
SECOND_CHANGE_CHANCE = 0.35
"""Probability of a second change after an undirected one: one step often lowers the score where two do not."""
MAX_INTENT_CHARS = 80
CRITIQUE_CHANGES = ("condition", "neutralise")
"""Changes that a critique requests and that make more than one idea of a formula."""
NAME_PATTERN = re.compile(r"[a-z_]+")
GRAMMAR_SHARE, OPEN_GRAMMAR_SHARE = 0.5, 0.75
"""Share of a survey's fresh drafts drawn from the grammar, beside its skeletons; the same for an open survey."""
SKELETON_PASSES = 20
"""Passes over a mechanism's draws until a reply is short of formulas: each draws and changes them anew."""
WIDENED_SHARE = 0.5
WIDENING = ("smooth", "neutralise", "retime", MUTATION_PREFIX + "retune", MUTATION_PREFIX + "nudge_window")
"""Share of a mechanism's fresh drafts that change a draw of a skeleton, and the changes, which may keep its meaning."""


@dataclass(frozen=True)
class Parent:
    """A formula to change: a scored one, or a draft.

    Attributes
    ----------
    t
        t on search; of a draft its forecast.
    scored
        The id of the scored formula that children name as parent; of a draft, its own parent.
    done
        The changes from the scored ancestor to this draft.
    """

    expression: Expression
    t: float
    weaknesses: tuple[str, ...] = ()
    scored: str = ""
    done: str = ""

    def intent(self, change: str) -> str:
        """Return a child's intent: the change; of a draft's child, all changes since the scored ancestor."""
        changes = f"{self.done} + {change.removeprefix(MUTATION_PREFIX)}" if self.scored and self.done else change
        return changes[:MAX_INTENT_CHARS]

    @property
    def where(self) -> str:
        """Its first weakness, as the table of operators names it."""
        return next(iter(self.weaknesses), NO_WEAKNESS)


@dataclass
class FormulaCollector:
    """Collect the formulas of one reply; refuse known, too large or unrelated ones."""

    context: Context
    claimed: frozenset[str]
    known: set[Node]
    ids: set[str]
    kept: list[Json] = field(default_factory=list)

    def offer(self, formula: str | Node, rationale: str, intent: str, parent: str = "") -> bool:
        """Add a formula, given as text or tree, if it can be parsed, is new and fits the hypothesis."""
        if isinstance(formula, Node) and self._is_dropped_for_its_form(formula, intent):
            return False
        expression = self.read(formula)
        if expression is None or not self._is_on_topic(expression, intent) or not self._is_new(expression, intent):
            return False
        self.known.add(expression.core)
        self.ids.add(expression.id)
        row = {"text": expression.text, "rationale": rationale[:1_000], "intent": intent}
        self.kept.append({**row, "parent": parent} if parent else row)
        return True

    def read(self, formula: str | Node) -> Expression | None:
        """Return the parsed formula, or None."""
        fields, groups = self.context.fields, self.context.groups
        try:
            if isinstance(formula, Node):
                return express(formula, fields=fields, groups=groups)
            return parse(formula, fields=fields, groups=groups)
        except FactorError:
            return None

    def _is_dropped_for_its_form(self, tree: Node, intent: str) -> bool:
        """Return whether a tree would be dropped whatever its units: most changes end here, at a third of the price."""
        if self.mechanism is None and not self._is_asked_by_critique(intent) and not is_plain(tree):
            return True
        fields, groups = self.context.fields, self.context.groups
        try:
            canonical, core = normalise_unchecked(tree, fields=fields, groups=groups)
        except FactorError:
            return True
        direction = self.context.hypothesis.direction
        if self.mechanism is not None and not is_quantity(canonical, self.mechanism, direction, fields, groups):
            return True
        return intent != "invert" and core in self.known

    @cached_property
    def mechanism(self) -> Mechanism | None:
        """The mechanism that the hypothesis states; None for a survey, and for one that is not known."""
        hypothesis = self.context.hypothesis
        mechanism = None if hypothesis.either_way else find_mechanism(hypothesis.mechanism)
        return None if mechanism is None or mechanism.survey else mechanism

    def _is_on_topic(self, expression: Expression, intent: str) -> bool:
        strange = [name for name in expression.fields if name not in self.claimed]
        if self.mechanism is not None:
            return not strange and self._measures_mechanism(expression, self.mechanism)
        plain = bool(expression.code) or is_plain(expression.core) or self._is_asked_by_critique(intent)
        # The gate asks for every field of a stated mechanism; a survey states none, and may stray.
        near = 2 * len(strange) <= len(expression.fields) if self.context.hypothesis.either_way else not strange
        return plain and near

    def _measures_mechanism(self, expression: Expression, mechanism: Mechanism) -> bool:
        """Return whether a formula is an instance of the mechanism; its own Python factors are."""
        context = self.context
        if expression.code:
            return bool(find_codes(mechanism.id))
        return is_instance(expression, mechanism, context.hypothesis.direction, context.fields, context.groups)

    def _is_asked_by_critique(self, intent: str) -> bool:
        return intent in CRITIQUE_CHANGES and bool(self.context.critique)

    def _is_new(self, expression: Expression, intent: str) -> bool:
        if intent == "invert":
            return expression.id not in self.ids
        return expression.core not in self.known


def propose_formulas(context: Context) -> Json:
    """Return formulas for one hypothesis: repairs if some were refused, else a mix that depends on the step."""
    collector = _make_collector(context)
    if context.request.python and context.task == "factor" and context.request.step == 0:
        _offer_code(context, collector)
    if context.task == "repair":
        _repair(context, collector)
    else:
        _climb(context, collector)
    _fill(context, collector)
    if not collector.kept:  # the fields of the hypothesis allow no skeleton, and a reply needs a formula
        collector.mechanism = None
        for tree in filter(None, (_sample_tree(context) for _ in range(TRIES_PER_FORMULA))):
            collector.offer(tree, "drawn at random from the grammar", DATA_MINED)
    return {"candidates": collector.kept[: context.request.count]}


def _offer_code(context: Context, collector: FormulaCollector) -> None:
    """Offer one new Python factor of the mechanism, if there is one."""
    for code in find_codes(context.hypothesis.mechanism):
        rationale = f"Python, since the language cannot say it: {code.said}"
        if collector.offer(code.draw(context.rng), rationale, "explore"):
            return


def _make_collector(context: Context) -> FormulaCollector:
    claimed = frozenset(context.hypothesis.fields) or frozenset(context.fields)
    collector = FormulaCollector(context, claimed | set(context.groups), set(), set())
    texts = [str(text) for text in context.rows("record", "tried")]
    sources = (("record", ("elite", "library")), ("branch", ("scored", "best", "refused", "cited", "drafts")))
    formulas = [formula for part, names in sources for name in names for formula in context.formulas(part, name)]
    for text in [*texts, *(formula.text for formula in formulas)]:
        expression = collector.read(text)
        if expression is not None:
            collector.known.add(expression.core)
            collector.ids.add(expression.id)
    return collector


def _list_parents(collector: FormulaCollector, formulas: Sequence[ShownFormula]) -> list[Parent]:
    """Return the formulas that can be parsed and are not code."""
    parents = []
    for formula in formulas:
        expression = collector.read(formula.text)
        if expression is not None and not expression.code:
            scored = expression.id if formula.parent is None else formula.parent
            parents.append(Parent(expression, formula.t_stat, formula.weaknesses, scored, formula.intent))
    return parents


def _list_measured(context: Context) -> list[ShownFormula]:
    """Return this branch's scored formulas, without the refused ones."""
    formulas = [*context.formulas("branch", "scored"), *context.formulas("branch", "best")]
    return [formula for formula in formulas if formula.id]


def _sort_by_strength(parents: Sequence[Parent]) -> list[Parent]:
    return sorted(parents, key=lambda parent: (-abs(parent.t), parent.expression.id))


def _list_draft_parents(collector: FormulaCollector) -> list[Parent]:
    """Return this branch's drafts that are to be changed, the most promising first; their t is the forecast."""
    drafts = collector.context.formulas("branch", "drafts")
    return _list_parents(
        collector, [replace(draft, parent=draft.parent or "", t_stat=draft.rank_ic) for draft in drafts]
    )


def _climb(context: Context, collector: FormulaCollector) -> None:
    """Offer changes of the best formulas until the breeding quota is filled."""
    drafts = _list_draft_parents(collector)
    cited = _list_parents(collector, context.formulas("branch", "cited"))
    own = drafts or [*_sort_by_strength(_list_parents(collector, _list_measured(context)))[:MAX_BEST_PARENTS], *cited]
    elite = [] if drafts or cited else _sort_by_strength(_list_parents(collector, context.formulas("record", "elite")))
    best = max((abs(parent.t) for parent in own), default=0.0)
    bred = context.request.count if drafts else _count_to_breed(context, best)
    breeder = Breeder(context, collector, own, elite, even=bool(drafts))
    for _ in range(TRIES_PER_FORMULA * context.request.count):
        if len(collector.kept) >= bred:
            return
        breeder.breed()


def _count_to_breed(context: Context, best: float) -> int:
    """Return how many formulas to breed: a survey explores first, and breeds only results that luck cannot explain."""
    mechanism = find_mechanism(context.hypothesis.mechanism)
    if mechanism is not None and mechanism.survey and not context.rows("branch", "cited"):
        return context.request.count // 2 if best >= MIN_SURVEY_BREEDING_T else 0
    if best >= MIN_BREEDING_T:
        return (
            round(BRED_SHARE * context.request.count)
            if context.request.count > FEW_CANDIDATES
            else context.request.count
        )
    return context.request.count // 2 if best > 0 and context.request.step > 0 else 0


@dataclass(frozen=True)
class Breeder:
    """Change scored formulas, along the critique if there is one; with `even`, change drafts, each equally often."""

    context: Context
    collector: FormulaCollector
    own: list[Parent]
    elite: list[Parent]
    even: bool = False

    def breed(self) -> bool:
        """Offer one changed formula; return whether it was accepted."""
        rng = self.context.rng
        pool = self.elite if self.elite and rng.random() < ELITE_SHARE else self.own
        if not pool:
            return False
        parent = pool[int(rng.integers(len(pool))) if self.even else _draw_position(rng, len(pool))]
        intent = self._bandit.choose({**CHANGE_WEIGHTS, **self._weigh_directed(parent)}, parent.where, rng)
        changed = CHANGES[intent](parent.expression.root, self._material, rng)
        if changed is not None and intent not in DIRECTED_CHANGES and rng.random() < SECOND_CHANGE_CHANCE:
            second = self._bandit.choose(CHANGE_WEIGHTS, parent.where, rng)
            changed = CHANGES[second](changed, self._material, rng)
            intent = f"{intent} + {second.removeprefix(MUTATION_PREFIX)}"
        if changed is None:
            return False
        if intent != "invert" and self.collector.mechanism is None:  # the sign of a mechanism's formula is its own
            changed = self._fix_sign(changed, parent)
        origin = (
            f"a draft that promises a RankIC of {parent.t:.3f}"
            if self.even
            else f"{parent.expression.id} with t {parent.t:.1f}"
        )
        rationale = f"{intent.removeprefix(MUTATION_PREFIX)} of {origin}"
        return self.collector.offer(changed, rationale, parent.intent(intent), parent.scored)

    @cached_property
    def _bandit(self) -> Bandit:
        return Bandit.parse(self.context.rows("record", "operators"))

    def _weigh_directed(self, parent: Parent) -> dict[str, float]:
        """Return weights of directed changes: the critique's, else those that cure the parent's weaknesses.

        Together they have a fixed share of the total weight; earlier ones weigh more.
        """
        if not self.context.request.directed:
            return {}
        advice = self.context.critique.get("advice", [])
        advised = [change["operator"] for change in advice if change.get("operator") in DIRECTED_CHANGES]
        cures = [operator for code in parent.weaknesses for operator in CURES.get(code, ())]
        names = list(dict.fromkeys(advised or cures))
        if not names:
            return {}
        falling = ORDER_DECAY ** np.arange(len(names))
        total = sum(CHANGE_WEIGHTS.values()) * DIRECTED_SHARE / (1.0 - DIRECTED_SHARE)
        return {name: float(total * weight / falling.sum()) for name, weight in zip(names, falling, strict=True)}

    @cached_property
    def _material(self) -> ChangeMaterial:
        fields = [name for name in self.context.fields if name in self.collector.claimed] or list(self.context.fields)
        mates = [parent.expression.root for parent in (*self.own, *self.elite)]
        return ChangeMaterial(tuple(fields), self.context.groups, tuple(mates))

    def _fix_sign(self, node: Node, parent: Parent) -> Node:
        """Invert a child whose parent has the sign opposite to the hypothesis."""
        wrong = parent.t * self.context.hypothesis.direction < 0
        return (invert(node, self._material, self.context.rng) or node) if wrong else node


def _draw_position(rng: np.random.Generator, count: int) -> int:
    """Return a random position; earlier ones are more likely."""
    weights = ORDER_DECAY ** np.arange(count)
    return int(rng.choice(count, p=weights / weights.sum()))


def _repair(context: Context, collector: FormulaCollector) -> None:
    """Replace each refused formula by a small change of it, or by a fresh one if it cannot be parsed."""
    for formula in context.formulas("branch", "refused")[: context.request.count]:
        goal = len(collector.kept) + 1
        expression = collector.read(formula.text)
        parent = [Parent(expression, 0.0)] if expression is not None and not expression.code else []
        breeder = Breeder(context, collector, parent, [])
        for _ in range(TRIES_PER_FORMULA if parent else 0):
            if breeder.breed():
                break
        for text, rationale in _draw_formulas(context, collector):
            if len(collector.kept) >= goal:
                break
            collector.offer(text, rationale, "repair")


def _fill(context: Context, collector: FormulaCollector) -> None:
    """Offer skeletons and sampled formulas until there are enough; an open survey begins with unexplored formulas."""
    mechanism = find_mechanism(context.hypothesis.mechanism)
    begins = context.request.step == 0 and mechanism is not None and mechanism.open
    for formula in context.formulas("record", "unexplored") if begins else []:
        if 2 * len(collector.kept) < context.request.count:
            collector.offer(formula.text, "nobody wrote it yet, and it is worth a score", "explore")
    for text, rationale in _draw_formulas(context, collector):
        if len(collector.kept) >= context.request.count:
            return
        collector.offer(text, rationale, "explore")


def _draw_formulas(context: Context, collector: FormulaCollector) -> Iterator[tuple[str | Node, str]]:
    """Yield fresh formulas, each with a remark: of the stated mechanism alone, or of a survey and the grammar."""
    if collector.mechanism is not None:
        yield from _draw_instances(context, collector, collector.mechanism)
        return
    mechanism = find_mechanism(context.hypothesis.mechanism)
    if mechanism is None or mechanism.open:
        skeletons, share = _draw_any_skeleton(context), OPEN_GRAMMAR_SHARE
    else:
        skeletons, share = _draw_skeletons(context, mechanism), GRAMMAR_SHARE
    for _ in range(_count_draws(context)):
        draw = None if context.rng.random() < share else next(skeletons, None)
        tree = None if draw else _sample_tree(context)
        if draw:
            yield draw
        elif tree is not None:
            yield tree, "drawn at random from the grammar"
    for name in context.fields:
        for window in range(2, 250):
            yield f"ts_rank({name}, {window})", "nothing else was new"


def _count_draws(context: Context) -> int:
    return 8 * TRIES_PER_FORMULA + 4 * context.request.count


def _draw_instances(
    context: Context, collector: FormulaCollector, mechanism: Mechanism
) -> Iterator[tuple[str | Node, str]]:
    """Yield draws of the mechanism's skeletons, then changed draws among them; the collector drops what drifts off."""
    material = ChangeMaterial(tuple(sorted(collector.claimed - {*context.groups})), context.groups)
    for _ in range(SKELETON_PASSES):
        for place, (text, rationale) in enumerate(_draw_skeletons(context, mechanism)):
            expression = collector.read(text) if place >= len(mechanism.skeletons) else None
            if expression is None or context.rng.random() >= WIDENED_SHARE:
                yield text, rationale
                continue
            change = WIDENING[int(context.rng.integers(len(WIDENING)))]
            node = CHANGES[change](expression.root, material, context.rng)
            if node is not None:
                yield node, f"{change.removeprefix(MUTATION_PREFIX)} of {rationale}"


def _sample_tree(context: Context) -> Node | None:
    """Return a random tree of the plain part of the language, over the hypothesis' fields and operators."""
    fields = select_fields(context.fields)
    claimed = tuple(name for name in fields if name in context.hypothesis.fields)
    operators = frozenset(NAME_PATTERN.findall(context.hypothesis.statement))
    return sample_plain(context.rng, claimed or fields, operators)


def _draw_any_skeleton(context: Context) -> Iterator[tuple[str, str]]:
    """Yield draws of the skeletons of all mechanisms."""
    usable = [
        mechanism
        for mechanism in load_mechanisms()
        if mechanism.skeletons and mechanism.usable((*context.fields, *context.groups))
    ]
    while True:
        choice = usable[int(context.rng.integers(len(usable)))]
        skeleton = choice.skeletons[int(context.rng.integers(len(choice.skeletons)))]
        names = [name for name in choice.fields if name in context.fields]
        yield fill_skeleton(skeleton, names, context.rng), f"a skeleton of {choice.id}"


def _draw_skeletons(context: Context, mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """Yield draws of the mechanism's skeletons, in random order, each once before any is repeated."""
    claimed = context.hypothesis.fields or context.fields
    known = [name for name in mechanism.fields if name in context.fields]
    names = [name for name in known if name in claimed] or known
    rationale = f"a skeleton of {mechanism.id}: {mechanism.statement}"
    for _ in range(max(6, SKELETON_DRAWS // len(mechanism.skeletons))):
        for index in context.rng.permutation(len(mechanism.skeletons)):
            yield fill_skeleton(mechanism.skeletons[int(index)], names, context.rng), rationale
