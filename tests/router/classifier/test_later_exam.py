"""What the classifier reaches on prompts by writers who saw the taxonomy alone: bare ones, and with pastes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom.router import RouterConfig
from alphaloom.router.classifier.training_prompts import read_attachments, read_examples
from alphaloom.router.policy.decision import Decider, RoutingQuestion

FOLDER = Path(__file__).parent / "exam" / "later"
MODELS = {"small": {"model": "a/small", "place": "local"}, "large": {"model": "b/large", "tier": "frontier"}}
DECIDER = Decider(RouterConfig.model_validate({"models": MODELS}))


def read_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]


def grade(name: str) -> dict[str, float]:
    """Return the shares of an exam, and the expected calibration error of the probability of hardness."""
    lines = read_lines(name)
    decisions = [DECIDER.decide(RoutingQuestion(prompt=line["prompt"])) for line in lines]
    hard = np.array([line["label"]["difficulty"] == "high" for line in lines])
    probability = np.array([decision.signals["hard"] for decision in decisions])
    small = np.array([decision.tier == "local" for decision in decisions])
    bins = np.minimum((probability * 10).astype(int), 9)
    gaps = [abs(probability[bins == number].mean() - hard[bins == number].mean()) for number in np.unique(bins)]
    shares = [np.mean(bins == number) for number in np.unique(bins)]
    right = [one.intent == line["label"]["intent"] for one, line in zip(decisions, lines, strict=True)]
    balanced = ((probability > 0.5)[hard].mean() + (probability <= 0.5)[~hard].mean()) / 2
    return {
        "prompts": len(lines), "hard sent down": float(small[hard].mean()), "easy kept": float(small[~hard].mean()),
        "difficulty": float(balanced), "intent": float(np.mean(right)), "calibration": float(np.dot(gaps, shares)),
    }  # fmt: skip  # a table


def test_bare_prompts_of_unseen_writers() -> None:
    shares = grade("bare")
    assert shares["prompts"] == 200
    assert shares["difficulty"] >= 0.85
    assert shares["intent"] >= 0.75
    assert shares["calibration"] <= 0.05
    assert shares["hard sent down"] <= 0.05
    assert shares["easy kept"] >= 0.60


def test_requests_with_eight_kinds_of_pastes() -> None:
    lines, shares = read_lines("pastes"), grade("pastes")
    assert len({line["kind"] for line in lines}) == 8
    assert shares["prompts"] == 400
    assert shares["hard sent down"] <= 0.05
    assert shares["easy kept"] >= 0.60


@pytest.mark.parametrize("name", ["bare", "pastes"])
def test_no_prompt_and_no_attachment_of_it_was_trained_on(name: str) -> None:
    known = {" ".join(example.prompt.lower().split()) for example in read_examples()}
    attached = [" ".join(text.lower().split()) for text in read_attachments()]
    asked = [" ".join(line["prompt"].lower().split()) for line in read_lines(name)]
    assert not set(asked) & known
    assert not [text for text in attached if any(text in prompt for prompt in asked)]
