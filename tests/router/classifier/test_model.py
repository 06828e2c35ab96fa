"""The classifier that ships: what it is made of, what it reads, and what is said of one that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from alphaloom.router.classifier import INTENTS
from alphaloom.router.classifier.model import SHIPPED, Classifier
from alphaloom.router.classifier.training_prompts import read_examples
from alphaloom.router.errors import RouterError


def refuses(said: str | None = None) -> pytest.RaisesExc[RouterError]:
    """Expect that what reads prompts is refused, and the words."""
    return pytest.raises(RouterError, match=said, check=lambda error: error.code == "bad_classifier")


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier.shipped()


def test_it_is_small_and_made_of_enough() -> None:
    examples = read_examples()
    assert SHIPPED.stat().st_size < 2_000_000
    assert len(examples) >= 1_500
    assert len({example.template for example in examples}) >= 400
    cells = {(example.intent, example.hard) for example in examples}
    assert cells == {(intent, hard) for intent in INTENTS for hard in (False, True)}


@pytest.mark.parametrize(
    ("prompt", "intent", "hard"),
    [
        ("ts_mean(close, 20 is missing a bracket, add it", "debug", False),
        (
            "Invent a signal from options order flow that nobody trades yet, and argue causally why it should persist",
            "factor_idea",
            True,
        ),
        ("Which field holds the traded volume in shares?", "data_lookup", False),
        ("Is this headline good or bad for the stock: 'Acme cuts its guidance'?", "sentiment", False),
    ],
)
def test_plain_cases_are_read_as_anybody_would(classifier: Classifier, prompt: str, intent: str, hard: bool) -> None:
    reading = classifier.read(prompt)
    assert reading.intent == intent
    assert (reading.hard > 0.5) == hard
    assert sum(reading.intents.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["", " ", "\x00", "🙂", "a" * 100_000, "\ud800"])
def test_any_text_can_be_read(classifier: Classifier, text: str) -> None:
    reading = classifier.read(text)
    assert 0.0 <= reading.hard <= 1.0
    assert np.isfinite(list(reading.intents.values())).all()


@pytest.mark.parametrize("body", [b"", b"none", None])
def test_a_classifier_that_cannot_be_read_is_told(tmp_path: Path, body: bytes | None) -> None:
    path = tmp_path / "weights.npz"
    if body is not None:
        path.write_bytes(body)
    with refuses("cannot be read") as told:
        Classifier.shipped(path)
    assert "build" in told.value.hint


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"intent": "none", "difficulty": "low", "template": "x"}',
        '{"intent": "code"}',
        json.dumps({"intent": "code", "difficulty": "low", "template": "x", "slots": {"a": ["1"]}}),
    ],
)
def test_a_line_that_is_no_template_is_told_with_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"intent": "code", "difficulty": "low", "template": "x"}\n' + line)
    with refuses("line 2"):
        read_examples(tmp_path)
