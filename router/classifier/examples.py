"""The training prompts: templates with fillings, written by hand in several voices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadClassifier
from .reading import INTENTS

TRAINING_FOLDER = Path(__file__).with_name("training")
FILLINGS = 3
"""Prompts at most that one template gives."""


@dataclass(frozen=True)
class Example:
    """One prompt with its labels; `template` is shared by those that differ in fillings only, `voice` by one writer's."""

    prompt: str
    intent: str
    hard: bool
    template: str
    voice: str


def read_examples(folder: Path = TRAINING_FOLDER) -> list[Example]:
    """Return all examples in the order of the files.

    Raises
    ------
    BadClassifier
        A line is no template, names an unknown intent, or its slots are not those of its text.
    """
    found = [each for path in sorted(folder.glob("*.jsonl")) for each in _read(path)]
    if not found:
        raise BadClassifier("there are no training prompts", field="training", got=str(folder))
    return found


def _read(path: Path) -> Iterator[Example]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            told = json.loads(line)
            slots: Mapping[str, Sequence[str]] = told.get("slots") or {}
            hard, intent = {"low": False, "high": True}[told["difficulty"]], INTENTS[INTENTS.index(told["intent"])]
            for prompt in _fill_template(told["template"], slots):
                yield Example(prompt, intent, hard, f"{path.stem}/{number}", path.stem)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise BadClassifier(
                f"line {number} of {path.name} is no template: {error}", field="training", got=line[:100],
                allowed='{"intent": ..., "difficulty": "low" or "high", "template": ..., "slots": {...}}',
            ) from None  # fmt: skip


def _fill_template(template: str, slots: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a template with its fillings, each slot moved on by one every time."""
    for turn in range(min(max([len(each) for each in slots.values()], default=1), FILLINGS)):
        prompt = template
        for place, (name, fillings) in enumerate(slots.items()):
            if f"{{{name}}}" not in template:
                raise ValueError(f"no place for {name}")
            prompt = prompt.replace(f"{{{name}}}", fillings[(turn + place) % len(fillings)])
        yield prompt
