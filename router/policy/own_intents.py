"""Intents of the user's own: what tells them, checked before a prompt is read by it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from ...ledger.files import read_given_text
from ..classifier import INTENTS
from ..errors import BadExamples
from .intents import CALL_INTENTS

MIN_EXAMPLES, MAX_EXAMPLES = 5, 50
MAX_OWN_INTENTS = 20
FIELD = "routing.own_intents"
EXAMPLE_LINE_FORM = '{"prompt": "..."}, one a line'


class OwnIntent(BaseModel):
    """An intent of the user's own, told by prompts as they are really asked: here, or in a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    examples: tuple[str, ...] = Field(
        default=(), description=f"{MIN_EXAMPLES} to {MAX_EXAMPLES} prompts, in different words"
    )
    file: Path | None = Field(default=None, description='or a JSONL file of them, a line each: {"prompt": "..."}')

    def beside(self, name: str, folder: Path) -> Self:
        """Return the intent with the examples of its file, so that what is recorded of it needs no file."""
        if self.file is None:
            return self
        field = f"{FIELD}.{name}"
        if self.examples:
            raise BadExamples(
                f"{field} has examples and a file", field=field, got=str(self.file),
                allowed="examples or file", hint="Put all of them into one of the two.",
            )  # fmt: skip
        return self.model_copy(update={"examples": _read(f"{field}.file", folder / self.file), "file": None})


def check_names(own: Mapping[str, OwnIntent]) -> None:
    """Refuse names that are taken or are none, and more intents than can be told apart.

    Raises
    ------
    BadExamples
        With the name.
    """
    taken = {*INTENTS, *CALL_INTENTS}
    for name in own:
        if name in taken or not name.isidentifier() or not name.islower():
            said = "is an intent of ours" if name in taken else "is no name of an intent"
            raise BadExamples(
                f"{FIELD}: {name!r} {said}", field=FIELD, got=name,
                allowed=f"small letters, digits and _, and none of {', '.join(sorted(taken))}",
                hint="Call it something else, such as options_surface.",
            )  # fmt: skip
    if len(own) > MAX_OWN_INTENTS:
        raise BadExamples(
            f"{FIELD} has too many intents", field=FIELD, got=len(own), allowed=f"at most {MAX_OWN_INTENTS}",
            hint="Join those that go to the same tier.",
        )  # fmt: skip


def examples_of(own: Mapping[str, OwnIntent]) -> dict[str, tuple[str, ...]]:
    """Return the examples by intent, those of a file that no folder was named for from the folder one stands in.

    Raises
    ------
    BadExamples
        Too few or too many, an empty one, the same one twice, or a file that cannot be read.
    """
    check_names(own)
    read = {name: each.beside(name, Path()).examples for name, each in own.items()}
    seen: dict[str, str] = {}
    for name, texts in read.items():
        field = f"{FIELD}.{name}.examples"
        if not MIN_EXAMPLES <= len(texts) <= MAX_EXAMPLES:
            raise BadExamples(
                f"{field}: {len(texts)} {'is' if len(texts) == 1 else 'are'} too {'few' if len(texts) < MIN_EXAMPLES else 'many'}",
                field=field, got=len(texts), allowed=f"{MIN_EXAMPLES} to {MAX_EXAMPLES} prompts",
                hint="Take prompts as they are really asked, in different words.",
            )  # fmt: skip
        _check_texts(field, name, texts, seen)
    return read


def _check_texts(field: str, name: str, texts: Sequence[str], seen: dict[str, str]) -> None:
    """Refuse what is empty and what was there before; `seen` has the place of each text so far."""
    for number, text in enumerate(texts, 1):
        spelled = " ".join(text.casefold().split())
        if not any(letter.isalnum() for letter in spelled):
            raise BadExamples(
                f"{field}: number {number} holds no word", field=field, got=text[:100], allowed="a prompt",
                hint="Take it out.",
            )  # fmt: skip
        place = f"number {number} of {name}"
        if before := seen.get(spelled):
            raise BadExamples(
                f"{field}: number {number} is the same as {before}", field=field, got=text[:100],
                allowed="each prompt once, case and spacing aside", hint="Take one of the two out.",
            )  # fmt: skip
        seen[spelled] = place


def _read(field: str, path: Path) -> tuple[str, ...]:
    try:
        lines = read_given_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise BadExamples(
            f"{field}: cannot read {path}: {said}", field=field, got=str(path), allowed=f"a file of lines {EXAMPLE_LINE_FORM}",
            hint="A path starts from the folder of the settings file.",
        ) from None  # fmt: skip
    return tuple(_line(field, path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _line(field: str, path: Path, number: int, line: str) -> str:
    try:
        prompt = json.loads(line)["prompt"]
        if not isinstance(prompt, str):
            raise TypeError
    except (ValueError, TypeError, KeyError):
        raise BadExamples(
            f"{field}: line {number} of {path.name} holds no prompt", field=field, got=line[:100], allowed=EXAMPLE_LINE_FORM,
            hint="Mend the line, or take it out.",
        ) from None  # fmt: skip
    return prompt
