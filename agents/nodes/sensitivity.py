"""How far a question may go: what agents were told of a confidential document stays with all that they ask afterwards."""

from __future__ import annotations

from ...router.calls import Sensitivity
from ...router.context import strictest
from ..protocols import SearchContext

TOLD_SENSITIVITY = "told_label"
"""The key, in what a round recalled, of the strictest label of all that was told in the run by then; absent: public."""


def strictest_so_far(desk: SearchContext, round_number: int) -> Sensitivity:
    """Return the strictest label of what was told in the rounds up to one."""
    kept = desk.journal.read("recall", f"r{round_number:02d}") or {} if desk.documents else {}
    label: Sensitivity = kept.get(TOLD_SENSITIVITY, "public")
    return label


def question_sensitivity(desk: SearchContext, key: str, own: Sensitivity) -> Sensitivity:
    """Return the label of a question of a round: the campaign's, its own, or that of what its round was told.

    Every later round is told of earlier hypotheses, and every formula comes of one, so no label is ever lowered.
    """
    head = key.partition("/")[0].removeprefix("r")
    told = strictest_so_far(desk, int(head)) if head.isdigit() else "public"
    return strictest([desk.config.sensitivity, own, told])
