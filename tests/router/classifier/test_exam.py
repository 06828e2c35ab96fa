"""What is promised of the classifier, on prompts by people who saw the taxonomy and nothing that it was trained on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from alphaloom.router import RouterConfig
from alphaloom.router.classifier.training_prompts import NOISES, add_noise, read_examples
from alphaloom.router.policy.decision import Decider, RoutingQuestion

EXAMS = sorted(Path(__file__).with_name("exam").glob("*.jsonl"))
MODELS = {"small": {"model": "a/small", "place": "local"}, "large": {"model": "b/large", "tier": "frontier"}}
DECIDER = Decider(RouterConfig.model_validate({"models": MODELS}))


@pytest.mark.parametrize("path", EXAMS, ids=lambda path: path.stem)
def test_an_exam_is_passed(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    told = [DECIDER.decide(RoutingQuestion(prompt=line["prompt"])) for line in lines]
    hard = np.array([line["label"]["difficulty"] == "high" for line in lines])
    seen = np.array([decision.difficulty == "high" for decision in told])
    small = np.array([decision.tier == "local" for decision in told])
    right = [each.intent == line["label"]["intent"] for each, line in zip(told, lines, strict=True)]
    assert len(lines) >= 200
    assert (seen[hard].mean() + (~seen)[~hard].mean()) / 2 >= 0.80
    assert np.mean(right) >= 0.45
    assert small[hard].mean() <= 0.05
    assert small[~hard].mean() >= 0.40
    with_role = [DECIDER.decide(RoutingQuestion(prompt=line["prompt"], role=line["role"])).intent for line in lines]
    assert np.mean([said == line["label"]["intent"] for said, line in zip(with_role, lines, strict=True)]) >= 0.95
    for kind in NOISES:
        again = [
            DECIDER.decide(RoutingQuestion(prompt=add_noise(line["prompt"], kind, 5, learned=False))) for line in lines
        ]
        assert np.mean([one.tier != other.tier for one, other in zip(told, again, strict=True)]) < 0.05


def test_no_exam_prompt_was_trained_on() -> None:
    known = {" ".join(example.prompt.lower().split()) for example in read_examples()}
    for path in EXAMS:
        asked = {" ".join(json.loads(line)["prompt"].lower().split()) for line in path.read_text("utf-8").splitlines()}
        assert not asked & known
