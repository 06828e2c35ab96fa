"""Which hypotheses get a branch: those that the person's settings allow and that repeat no earlier one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ...factors import Node, bucket_windows, parse, walk
from ...factors.describe import find_mention, find_stems, measure_stem_overlap
from ..config import Steer
from ..records import BranchHypothesis
from ..search_context import Json

FACTOR_ID = re.compile(r"\bf[0-9a-f]{16}\b")
"""The id of a factor; hypotheses that follow up different formulas are different."""

MIN_BRANCHES_PER_MECHANISM = 2
"""Branches of a round that one mechanism may always have: two with other fields or horizons still make a comparison."""

NEAR_HORIZON_RATIO = 1.5

NEAR_FIELD_SHARE = 0.8


def is_near_duplicate(first: BranchHypothesis, second: BranchHypothesis, likest: float) -> bool:
    """Return whether two hypotheses say nearly the same.

    They do if they claim the same direction, horizons within a factor of 1.5 and nearly the same fields (a Jaccard
    index of 0.8), follow up the same formulas, and share at least `likest` of the stems of mechanism and statement.
    """
    if first.direction != second.direction or frozenset(find_cited_ids(first)) != frozenset(find_cited_ids(second)):
        return False
    near_days, far_days = sorted((first.horizon_days, second.horizon_days))
    if (
        far_days > NEAR_HORIZON_RATIO * near_days
        or _measure_field_overlap(first.fields, second.fields) < NEAR_FIELD_SHARE
    ):
        return False
    return measure_stem_overlap(_join_words(first), _join_words(second)) >= likest


def _join_words(hypothesis: BranchHypothesis) -> str:
    return f"{hypothesis.mechanism} {hypothesis.statement}"


def find_cited_ids(hypothesis: BranchHypothesis) -> list[str]:
    """Return the ids of factors that a hypothesis names, in order."""
    return FACTOR_ID.findall(hypothesis.statement)


def _measure_field_overlap(one: Iterable[str], other: Iterable[str]) -> float:
    mine, theirs = {*one}, {*other}
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 1.0


def measure_variety(hypotheses: Iterable[BranchHypothesis]) -> float:
    """Return the effective number of stated mechanisms: the exponential of the entropy of their shares.

    Surveys state none. 0 without a mechanism.
    """
    counts = Counter(hypothesis.mechanism for hypothesis in hypotheses if not hypothesis.either_way)
    shares = [number / counts.total() for number in counts.values()]
    return math.exp(-math.fsum(share * math.log(share) for share in shares)) if shares else 0.0


def compute_mechanism_quota(branches: int, islands: int) -> int:
    """Return how many of a round's new hypotheses may name the same mechanism; 0: any number.

    With islands, it is the number of branches of one island.
    """
    return max(MIN_BRANCHES_PER_MECHANISM, -(-branches // islands)) if islands > 1 else 0


@dataclass(frozen=True)
class HypothesisFilter:
    """Decide which hypotheses may have a branch.

    Attributes
    ----------
    fields
        Fields that a hypothesis may name: those of the market that the person allows. Empty: any.
    likest
        Share of words from which two hypotheses are one; above 1 nothing is a duplicate.
    """

    steer: Steer
    fields: Collection[str]
    likest: float

    def sort(
        self, proposed: Sequence[BranchHypothesis], known: Sequence[BranchHypothesis]
    ) -> tuple[list[BranchHypothesis], list[Json]]:
        """Return the allowed hypotheses in order, and rows of the refused: mechanism, statement, why, source if any."""
        allowed: list[BranchHypothesis] = []
        refused: list[Json] = []
        for hypothesis in proposed:
            why = self.find_objection(hypothesis, [*known, *allowed])
            if why:
                refused.append({**hypothesis.select(("mechanism", "statement", "source")), "why": why})
            else:
                allowed.append(hypothesis)
        return allowed, refused

    def find_objection(self, hypothesis: BranchHypothesis, known: Iterable[BranchHypothesis]) -> str:
        """Return why a hypothesis gets no branch, or an empty string."""
        entry = self.steer.find_avoided(hypothesis.mechanism, hypothesis.statement)
        if entry:
            return f"it is about {entry!r}, which this campaign avoids"
        strange = sorted({*hypothesis.fields} - {*self.fields}) if self.fields else []
        if strange:
            return f"it names {', '.join(strange)}: allowed are the fields {', '.join(sorted(self.fields))}"
        like = next((earlier for earlier in known if is_near_duplicate(hypothesis, earlier, self.likest)), None)
        return f"it says nearly the same as {like.id or 'another of this reply'}" if like else ""


@dataclass
class HypothesisIntake:
    """Collect the hypotheses of a round, up to `most`; refused ones are stored with the reason.

    `share` limits how many may name the same mechanism (0: no limit). It applies to fresh ideas alone. Exempt are
    follow-ups and successors of formulas, hypotheses of the person and those about their `focus`, and surveys, which
    name no mechanism.
    """

    filter: HypothesisFilter
    known: Sequence[BranchHypothesis]
    most: int
    share: int = 0
    kept: list[BranchHypothesis] = field(default_factory=list)
    refused: list[Json] = field(default_factory=list)

    @property
    def room(self) -> int:
        """How many more hypotheses there may be."""
        return self.most - len(self.kept)

    def take(self, proposed: Sequence[Json], source: str = "") -> int:
        """Add the hypotheses that the filter allows, marked with their source; return how many were refused."""
        hypotheses = [BranchHypothesis.parse({**body, "source": source} if source else body) for body in proposed]
        unlike, refused = self.filter.sort(hypotheses, [*self.known, *self.kept])
        for hypothesis in unlike:
            if self._is_crowded(hypothesis):
                why = f"{self.share} hypotheses of this round are about this mechanism already: name another"
                refused.append({**hypothesis.select(("mechanism", "statement")), "why": why})
            elif self.room > 0:
                self.kept.append(hypothesis)
        self.refused += refused
        return len(refused)

    def _is_crowded(self, hypothesis: BranchHypothesis) -> bool:
        """Return whether a fresh hypothesis' mechanism has used up its share of the round."""
        about = find_stems(hypothesis.mechanism)
        rivals = [other for other in self.kept if self._is_fresh(other) and find_stems(other.mechanism) == about]
        return bool(self.share) and self._is_fresh(hypothesis) and len(rivals) >= self.share

    def _is_fresh(self, hypothesis: BranchHypothesis) -> bool:
        words = (hypothesis.mechanism, hypothesis.statement)
        asked_for = hypothesis.source or find_mention(words, self.filter.steer.focus)
        return not (asked_for or hypothesis.either_way or hypothesis.succeeds or find_cited_ids(hypothesis))


@lru_cache(maxsize=4096)
def list_subtrees(text: str, fields: tuple[str, ...], groups: tuple[str, ...]) -> dict[Node, int]:
    """Return each distinct subtree of a formula with its size; windows bucketed, sign and last wrapper removed."""
    return {node: node.size for _, node in walk(bucket_windows(parse(text, fields=fields, groups=groups).core))}


def measure_overlap(one: str, other: str, fields: tuple[str, ...], groups: tuple[str, ...]) -> float:
    """Return the structural overlap of two formulas, 0 to 1 (1: the same structure).

    It is `2 s / (a + b)` for the largest common subtree s of formulas of sizes a and b.
    """
    mine, theirs = list_subtrees(one, fields, groups), list_subtrees(other, fields, groups)
    shared = max((size for node, size in mine.items() if node in theirs), default=0)
    return 2.0 * shared / (max(mine.values()) + max(theirs.values()))
