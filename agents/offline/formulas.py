"""The offline Factor agent: skeletons first, then a climb from the best formulas along the critique."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ...factors import Expression, FactorError, Node, express, parse
from ...factors.space import sample_plain, select_fields
from ..memory.operator_outcomes import MUTATION_PREFIX, NO_WEAKNESS
from .critique import CURES
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
"""Share of many drafts that are changes of what was measured; the rest are fresh, and a forecast tells which are better."""
SECOND_CHANGE_CHANCE = 0.35
"""How often an undirected change is followed by another: one step is often downhill where two are not."""
MAX_INTENT_CHARS = 80
CRITIQUE_CHANGES = ("condition", "neutralise")
"""Changes that a critique asks for and that make more than one idea of a formula."""
NAME_PATTERN = re.compile(r"[a-z_]+")
GRAMMAR_SHARE, OPEN_GRAMMAR_SHARE = 0.5, 0.75
"""Share of fresh drafts that are drawn from the grammar, beside the skeletons of the hypothesis' mechanism, or of all."""


@dataclass(frozen=True)
class Parent:
    """A formula to start from: a measured one, or a draft, whose own parent and change so far are then its children's too."""

    expression: Expression
    t: float
    weaknesses: tuple[str, ...] = ()
    scored: str = ""
    done: str = ""

    def intent(self, change: str) -> str:
        """Return what a child by one more change is said to be: of a draft, all changes since what was scored."""
        whole = f"{self.done} + {change.removeprefix(MUTATION_PREFIX)}" if self.scored and self.done else change
        return whole[:MAX_INTENT_CHARS]

    @property
    def where(self) -> str:
        """Return its first weakness, as the table of operators names it."""
        return next(iter(self.weaknesses), NO_WEAKNESS)


@dataclass
class FormulaCollector:
    """The formulas of one reply; refuses what is tried, too large, or off the hypothesis' fields."""

    context: Context
    claimed: frozenset[str]
    known: set[Node]
    ids: set[str]
    kept: list[Json] = field(default_factory=list)

    def offer(self, said: str | Node, rationale: str, intent: str, parent: str = "") -> bool:
        """Keep a formula, a text or a tree, if it is readable, new and about the hypothesis."""
        if isinstance(said, Node) and not is_plain(said) and not self._is_asked_by_critique(intent):
            return False
        expression = self.read(said)
        if expression is None or not self._fits(expression, intent) or not self._new(expression, intent):
            return False
        self.known.add(expression.core)
        self.ids.add(expression.id)
        made = {"text": expression.text, "rationale": rationale[:1_000], "intent": intent}
        self.kept.append({**made, "parent": parent} if parent else made)
        return True

    def read(self, said: str | Node) -> Expression | None:
        """Return the formula, None where it cannot be read."""
        fields, groups = self.context.fields, self.context.groups
        try:
            if isinstance(said, Node):
                return express(said, fields=fields, groups=groups)
            return parse(said, fields=fields, groups=groups)
        except FactorError:
            return None

    def _fits(self, expression: Expression, intent: str) -> bool:
        strange = [name for name in expression.fields if name not in self.claimed]
        plain = bool(expression.code) or is_plain(expression.core) or self._is_asked_by_critique(intent)
        return plain and 2 * len(strange) <= len(expression.fields)

    def _is_asked_by_critique(self, intent: str) -> bool:
        return intent in CRITIQUE_CHANGES and bool(self.context.critique)

    def _new(self, expression: Expression, intent: str) -> bool:
        if intent == "invert":
            return expression.id not in self.ids
        return expression.core not in self.known


def propose_formulas(context: Context) -> Json:
    """Return formulas for one hypothesis: repaired ones where some were refused, else a mix by the step."""
    nest = _collector(context)
    if context.request.python and context.task == "factor" and context.request.step == 0:
        _offer_code(context, nest)
    if context.task == "repair":
        _repair(context, nest)
    else:
        _climb(context, nest)
    _fill(context, nest)
    return {"candidates": nest.kept[: context.request.count]}


def _offer_code(context: Context, nest: FormulaCollector) -> None:
    """Offer one Python factor of the mechanism, where there is one that was not tried."""
    for code in find_codes(context.hypothesis.mechanism):
        said = f"Python, since the language cannot say it: {code.said}"
        if nest.offer(code.draw(context.rng), said, "explore"):
            return


def _collector(context: Context) -> FormulaCollector:
    claimed = frozenset(context.hypothesis.fields) or frozenset(context.fields)
    nest = FormulaCollector(context, claimed | set(context.groups), set(), set())
    texts = [str(text) for text in context.rows("record", "tried")]
    shown = (("record", ("elite", "library")), ("branch", ("scored", "best", "refused", "cited", "drafts")))
    formulas = [formula for part, lists in shown for name in lists for formula in context.formulas(part, name)]
    for text in [*texts, *(formula.text for formula in formulas)]:
        expression = nest.read(text)
        if expression is not None:
            nest.known.add(expression.core)
            nest.ids.add(expression.id)
    return nest


def _parents(nest: FormulaCollector, formulas: Sequence[ShownFormula]) -> list[Parent]:
    """Return those formulas that can be read and are no code."""
    parents = []
    for formula in formulas:
        expression = nest.read(formula.text)
        if expression is not None and not expression.code:
            scored = expression.id if formula.parent is None else formula.parent
            parents.append(Parent(expression, formula.t_stat, formula.weaknesses, scored, formula.intent))
    return parents


def _measured_formulas(context: Context) -> list[ShownFormula]:
    """Return this branch's formulas that were measured; others were refused."""
    formulas = [*context.formulas("branch", "scored"), *context.formulas("branch", "best")]
    return [formula for formula in formulas if formula.id]


def _sort_by_strength(parents: Sequence[Parent]) -> list[Parent]:
    return sorted(parents, key=lambda parent: (-abs(parent.t), parent.expression.id))


def _draft_parents(nest: FormulaCollector) -> list[Parent]:
    """Return the drafts of this branch that are to be changed, the most promising first; their t is what they promise."""
    drafts = nest.context.formulas("branch", "drafts")
    return _parents(nest, [replace(draft, parent=draft.parent or "", t_stat=draft.rank_ic) for draft in drafts])


def _climb(context: Context, nest: FormulaCollector) -> None:
    """Offer changes of the best formulas; skeletons and sampled formulas where there is nothing worth changing."""
    drafts = _draft_parents(nest)
    cited = _parents(nest, context.formulas("branch", "cited"))
    own = drafts or [*_sort_by_strength(_parents(nest, _measured_formulas(context)))[:MAX_BEST_PARENTS], *cited]
    elite = [] if drafts or cited else _sort_by_strength(_parents(nest, context.formulas("record", "elite")))
    best = max((abs(parent.t) for parent in own), default=0.0)
    bred = context.request.count if drafts else _breeding_count(context, best)
    breeder = Breeder(context, nest, own, elite, even=bool(drafts))
    for _ in range(TRIES_PER_FORMULA * context.request.count):
        if len(nest.kept) >= bred:
            return
        breeder.breed()


def _breeding_count(context: Context, best: float) -> int:
    """Return how many formulas to breed: a survey maps first, and breeds only what luck cannot explain."""
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
    """Changes measured formulas, along the critique where there is one; `even`: drafts, each as often as any other."""

    context: Context
    nest: FormulaCollector
    own: list[Parent]
    elite: list[Parent]
    even: bool = False

    def breed(self) -> bool:
        """Offer one changed formula."""
        rng = self.context.rng
        pool = self.elite if self.elite and rng.random() < ELITE_SHARE else self.own
        if not pool:
            return False
        parent = pool[int(rng.integers(len(pool))) if self.even else _draw_position(rng, len(pool))]
        intent = self._bandit.choose({**CHANGE_WEIGHTS, **self._directed_weights(parent)}, parent.where, rng)
        changed = CHANGES[intent](parent.expression.root, self._stock(), rng)
        if changed is not None and intent not in DIRECTED_CHANGES and rng.random() < SECOND_CHANGE_CHANCE:
            again = self._bandit.choose(CHANGE_WEIGHTS, parent.where, rng)
            changed = CHANGES[again](changed, self._stock(), rng)
            intent = f"{intent} + {again.removeprefix(MUTATION_PREFIX)}"
        if changed is None:
            return False
        if intent != "invert":
            changed = self._fix_sign(changed, parent)
        told = (
            f"a draft that promises a RankIC of {parent.t:.3f}"
            if self.even
            else f"{parent.expression.id} with t {parent.t:.1f}"
        )
        said = f"{intent.removeprefix(MUTATION_PREFIX)} of {told}"
        return self.nest.offer(changed, said, parent.intent(intent), parent.scored)

    @cached_property
    def _bandit(self) -> Bandit:
        return Bandit.parse(self.context.rows("record", "operators"))

    def _directed_weights(self, parent: Parent) -> dict[str, float]:
        """Return weights of directed changes: what the critique asks for, else what cures the parent's weaknesses.

        All together weigh a fixed share beside the undirected ones, the first more than those after it.
        """
        if not self.context.request.directed:
            return {}
        advice = self.context.critique.get("advice", [])
        advised = [change["operator"] for change in advice if change.get("operator") in DIRECTED_CHANGES]
        cures = [operator for code in parent.weaknesses for operator in CURES.get(code, ())]
        names = list(dict.fromkeys(advised or cures))
        falling = ORDER_DECAY ** np.arange(len(names))
        whole = sum(CHANGE_WEIGHTS.values()) * DIRECTED_SHARE / (1.0 - DIRECTED_SHARE)
        return {name: float(whole * each / falling.sum()) for name, each in zip(names, falling, strict=True)}

    def _stock(self) -> ChangeMaterial:
        fields = [name for name in self.context.fields if name in self.nest.claimed] or list(self.context.fields)
        mates = [parent.expression.root for parent in (*self.own, *self.elite)]
        return ChangeMaterial(tuple(fields), self.context.groups, tuple(mates))

    def _fix_sign(self, node: Node, parent: Parent) -> Node:
        """Turn a child whose parent showed the opposite sign of what the hypothesis says."""
        wrong = parent.t * self.context.hypothesis.direction < 0
        return (invert(node, self._stock(), self.context.rng) or node) if wrong else node


def _draw_position(rng: np.random.Generator, count: int) -> int:
    """Return a position, earlier ones more often."""
    weights = ORDER_DECAY ** np.arange(count)
    return int(rng.choice(count, p=weights / weights.sum()))


def _repair(context: Context, nest: FormulaCollector) -> None:
    """Answer each refused formula with a small change of it, or with a skeleton where it cannot be read."""
    for formula in context.formulas("branch", "refused")[: context.request.count]:
        wanted = len(nest.kept) + 1
        expression = nest.read(formula.text)
        parent = [Parent(expression, 0.0)] if expression is not None and not expression.code else []
        breeder = Breeder(context, nest, parent, [])
        for _ in range(TRIES_PER_FORMULA if parent else 0):
            if breeder.breed():
                break
        for text, said in _draw_formulas(context):
            if len(nest.kept) >= wanted:
                break
            nest.offer(text, said, "repair")


def _fill(context: Context, nest: FormulaCollector) -> None:
    """Offer skeletons, then sampled formulas, until there are enough; a survey begins with what nobody wrote yet."""
    mechanism = find_mechanism(context.hypothesis.mechanism)
    begins = context.request.step == 0 and mechanism is not None and mechanism.open
    for formula in context.formulas("record", "unexplored") if begins else []:
        if 2 * len(nest.kept) < context.request.count:
            nest.offer(formula.text, "nobody wrote it yet, and it is worth a score", "explore")
    for text, said in _draw_formulas(context):
        if len(nest.kept) >= context.request.count:
            return
        nest.offer(text, said, "explore")


def _draw_formulas(context: Context) -> Iterator[tuple[str | Node, str]]:
    """Yield fresh formulas with a word on each: mostly skeletons of the mechanism, then typed random formulas."""
    mechanism = find_mechanism(context.hypothesis.mechanism)
    if mechanism is None or mechanism.open:
        skeletons, share = _any_skeleton(context), OPEN_GRAMMAR_SHARE
    else:
        skeletons, share = _skeletons(context, mechanism), GRAMMAR_SHARE
    for _ in range(8 * TRIES_PER_FORMULA + 4 * context.request.count):
        drawn = None if context.rng.random() < share else next(skeletons, None)
        tree = None if drawn else _sample_tree(context)
        if drawn:
            yield drawn
        elif tree is not None:
            yield tree, "drawn at random from the grammar"
    for name in context.fields:
        for window in range(2, 250):
            yield f"ts_rank({name}, {window})", "nothing else was new"


def _sample_tree(context: Context) -> Node | None:
    """Return a tree drawn from the plain part of the language, of the fields and operators that the hypothesis names."""
    known = select_fields(context.fields)
    claimed = tuple(name for name in known if name in context.hypothesis.fields)
    named = frozenset(NAME_PATTERN.findall(context.hypothesis.statement))
    return sample_plain(context.rng, claimed or known, named)


def _any_skeleton(context: Context) -> Iterator[tuple[str, str]]:
    """Yield draws of the skeletons of all mechanisms."""
    usable = [each for each in load_mechanisms() if each.skeletons and each.usable((*context.fields, *context.groups))]
    while True:
        chosen = usable[int(context.rng.integers(len(usable)))]
        skeleton = chosen.skeletons[int(context.rng.integers(len(chosen.skeletons)))]
        names = [name for name in chosen.fields if name in context.fields]
        yield fill_skeleton(skeleton, names, context.rng), f"a skeleton of {chosen.id}"


def _skeletons(context: Context, mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    """Yield draws of the mechanism's skeletons, each once before any comes again."""
    names = [name for name in mechanism.fields if name in context.fields]
    said = f"a skeleton of {mechanism.id}: {mechanism.statement}"
    for _ in range(max(6, SKELETON_DRAWS // len(mechanism.skeletons))):
        for index in context.rng.permutation(len(mechanism.skeletons)):
            yield fill_skeleton(mechanism.skeletons[int(index)], names, context.rng), said
