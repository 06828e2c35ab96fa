"""A question of our own agents is judged by what became of such questions, any other by its text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from alphaloom.router import RouterConfig
from alphaloom.router.classifier.fit_outcomes import (
    LabelledQuestion,
    fit_outcomes,
    read_labels,
    write_outcomes,
)
from alphaloom.router.classifier.outcomes import SHIPPED_OUTCOMES, AskedQuestion, OutcomeModel
from alphaloom.router.policy import Decider, RoutingQuestion

MODELS = {"small": {"model": "a/small", "place": "local"}, "large": {"model": "b/large", "tier": "frontier"}}
PAIR = ("small", "large")


def labels(*kinds: tuple[str, str, bool], campaigns: int = 6) -> list[LabelledQuestion]:
    return [
        LabelledQuestion(campaign, AskedQuestion(role, intent, 1_000), hard)
        for campaign in range(campaigns)
        for role, intent, hard in kinds
    ]


def test_the_shipped_model_is_that_of_the_recorded_labels(tmp_path: Path) -> None:
    made = tmp_path / "outcomes.json"
    write_outcomes(fit_outcomes(*read_labels()), made)
    assert made.read_bytes() == SHIPPED_OUTCOMES.read_bytes()


def test_a_kind_that_always_failed_is_hard_and_one_that_never_did_is_not() -> None:
    model = fit_outcomes(labels(("idea", "hypotheses", True), ("report", "summary", False)), PAIR)
    hard, easy = (model.read(AskedQuestion(*kind, 1_000)) for kind in (("idea", "hypotheses"), ("report", "summary")))
    assert hard is not None
    assert easy is not None
    assert (easy < 0.15, hard > 0.85) == (True, True)
    assert model.read(AskedQuestion("news", "sentiment", 1_000)) is None, "nobody labelled such a question"


def test_campaigns_that_disagree_leave_the_model_unsure() -> None:
    mixed = [
        LabelledQuestion(campaign, AskedQuestion("report", "summary", 500), campaign % 2 == 0) for campaign in range(8)
    ]
    chance = fit_outcomes(mixed, PAIR).read(AskedQuestion("report", "summary", 500))
    assert chance == pytest.approx(0.5, abs=0.1)


def test_what_neither_model_answered_is_no_label(tmp_path: Path) -> None:
    row = {"campaign": 1, "role": "report", "intent": "summary", "tokens": 500, "refused": 0}
    rows: list[dict[str, Any]] = [{"small": "s", "other": "o"}]
    rows += [row | {"researcher": one, "small": two} for one, two in ((1, 0), (1, 1), (0, 0), (0, 1))]
    file = tmp_path / "labels.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found, pair = read_labels(file)
    assert ([label.hard for label in found], pair) == ([True, False, False], ("s", "o"))


@pytest.mark.parametrize("roles", [{}, {"idea": "local"}])
def test_the_router_judges_our_own_questions_by_outcomes_and_a_fixed_role_wins(roles: Any) -> None:
    decider = Decider(RouterConfig.model_validate({"models": MODELS, "roles": roles}))
    asked = RoutingQuestion(prompt="Say hello.", role="idea", intent="hypotheses", context_tokens=4_000)
    decision = decider.decide(asked)
    assert decision.signals["classifier"] == OutcomeModel.shipped().name
    chance = OutcomeModel.shipped().read(AskedQuestion("idea", "hypotheses", 4_000))
    assert chance is not None
    assert decision.signals["hard"] == round(chance, 4)
    assert decision.tier == ("local" if roles else "frontier")
    by_text = decider.decide(RoutingQuestion(prompt="Say hello.", role="idea", context_tokens=4_000))
    assert by_text.signals["classifier"].startswith("ngrams-")
