"""What a prompt is for: intents by role and text, and intents of the user's own, told by example prompts.

The examples are checked before a prompt is read by them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from ...ledger.files import read_given_text
from ..classifier import INTENTS, PromptReading
from ..errors import RouterError

ROLE_INTENTS: Mapping[str, Mapping[str, float]] = {
    "idea": {"factor_idea": 1.0},
    "factor": {"code": 0.95, "debug": 0.05},
    "repair": {"debug": 1.0},
    "eval": {"backtest_read": 0.95, "critique": 0.05},
    "critic": {"critique": 1.0},
    "data": {"data_lookup": 1.0},
    "news": {"sentiment": 1.0},
    "report": {"summary": 1.0},
    "risk": {"portfolio_risk": 1.0},
    "macro": {"macro_regime": 1.0},
}
"""How likely each intent is before a word was read, by role; what a role never sends is not listed."""
CALL_INTENTS: Mapping[str, str] = {
    "hypotheses": "factor_idea",
    "formulas": "code",
    "repair": "debug",
    "critique": "critique",
}
"""What our own agents call what they ask."""
MIN_EXAMPLES, MAX_EXAMPLES = 5, 50
MAX_OWN_INTENTS = 20
FIELD = "routing.own_intents"
EXAMPLE_LINE_FORM = '{"prompt": "..."}, one a line'


def infer_intent(
    role: str | None, declared: str | None, text: PromptReading, own: Mapping[str, Mapping[str, float]] | None = None
) -> tuple[str, dict[str, float]]:
    """Return what is wanted, and how likely each intent is by role and text together.

    A declared intent is taken at its word; only what our agents call theirs is weighed by the text where the user says that
    their role also sends an intent of the user's own that texts can tell. A role weighs the text's probabilities (Bayes' rule); a role that nobody has heard
    of says nothing, and one that is the name of an intent says that.

    Parameters
    ----------
    role, declared : str or None
        What the caller says of itself and of what it asks.
    text : Reading
        What the text says.
    own : mapping, optional
        Roles of the user's, before those of ours.
    """
    known = declared if declared in INTENTS else CALL_INTENTS.get(declared or "", declared)
    said = (own or {}).get(role or "")
    told_by_text = declared in CALL_INTENTS and any(name in text.intents and name not in INTENTS for name in said or ())
    if known and not told_by_text:
        return known, {known: 1.0}
    prior = said or ROLE_INTENTS.get(role or "") or ({role: 1.0} if role in text.intents else None)
    if prior is None:
        return text.intent, text.intents
    weighed = {name: share * text.intents.get(name, 1.0) for name, share in prior.items()}
    total = sum(weighed.values()) or 1.0
    shares = {name: value / total for name, value in weighed.items()}
    return min(shares, key=lambda name: (-shares[name], name)), shares


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
            raise RouterError(
                f"{field} has examples and a file", code="bad_examples", field=field, got=str(self.file),
                allowed="examples or file", hint="Put all of them into one of the two.",
            )  # fmt: skip
        return self.model_copy(update={"examples": _read(f"{field}.file", folder / self.file), "file": None})


def check_intent_names(own: Mapping[str, OwnIntent]) -> None:
    """Refuse names that are taken or are none, and more intents than can be told apart.

    Raises
    ------
    RouterError
        With the name.
    """
    taken = {*INTENTS, *CALL_INTENTS}
    for name in own:
        if name in taken or not name.isidentifier() or not name.islower():
            said = "is an intent of ours" if name in taken else "is no name of an intent"
            raise RouterError(
                f"{FIELD}: {name!r} {said}", code="bad_examples", field=FIELD, got=name,
                allowed=f"small letters, digits and _, and none of {', '.join(sorted(taken))}",
                hint="Call it something else, such as options_surface.",
            )  # fmt: skip
    if len(own) > MAX_OWN_INTENTS:
        raise RouterError(
            f"{FIELD} has too many intents", code="bad_examples", field=FIELD, got=len(own), allowed=f"at most {MAX_OWN_INTENTS}",
            hint="Join those that go to the same tier.",
        )  # fmt: skip


def collect_examples(own: Mapping[str, OwnIntent]) -> dict[str, tuple[str, ...]]:
    """Return the examples by intent, those of a file that no folder was named for from the folder one stands in.

    Raises
    ------
    RouterError
        Too few or too many, an empty one, the same one twice, or a file that cannot be read.
    """
    check_intent_names(own)
    read = {name: each.beside(name, Path()).examples for name, each in own.items()}
    seen: dict[str, str] = {}
    for name, texts in read.items():
        field = f"{FIELD}.{name}.examples"
        if not MIN_EXAMPLES <= len(texts) <= MAX_EXAMPLES:
            raise RouterError(
                f"{field}: {len(texts)} {'is' if len(texts) == 1 else 'are'} too {'few' if len(texts) < MIN_EXAMPLES else 'many'}",
                code="bad_examples", field=field, got=len(texts), allowed=f"{MIN_EXAMPLES} to {MAX_EXAMPLES} prompts",
                hint="Take prompts as they are really asked, in different words.",
            )  # fmt: skip
        _check_texts(field, name, texts, seen)
    return read


def _check_texts(field: str, name: str, texts: Sequence[str], seen: dict[str, str]) -> None:
    """Refuse what is empty and what was there before; `seen` has the place of each text so far."""
    for number, text in enumerate(texts, 1):
        spelled = " ".join(text.casefold().split())
        if not any(letter.isalnum() for letter in spelled):
            raise RouterError(
                f"{field}: number {number} holds no word", code="bad_examples", field=field, got=text[:100], allowed="a prompt",
                hint="Take it out.",
            )  # fmt: skip
        place = f"number {number} of {name}"
        if before := seen.get(spelled):
            raise RouterError(
                f"{field}: number {number} is the same as {before}", code="bad_examples", field=field, got=text[:100],
                allowed="each prompt once, case and spacing aside", hint="Take one of the two out.",
            )  # fmt: skip
        seen[spelled] = place


def _read(field: str, path: Path) -> tuple[str, ...]:
    try:
        lines = read_given_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise RouterError(
            f"{field}: cannot read {path}: {said}", code="bad_examples", field=field, got=str(path), allowed=f"a file of lines {EXAMPLE_LINE_FORM}",
            hint="A path starts from the folder of the settings file.",
        ) from None  # fmt: skip
    return tuple(_line(field, path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _line(field: str, path: Path, number: int, line: str) -> str:
    try:
        prompt = json.loads(line)["prompt"]
        if not isinstance(prompt, str):
            raise TypeError
    except (ValueError, TypeError, KeyError):
        raise RouterError(
            f"{field}: line {number} of {path.name} holds no prompt", code="bad_examples", field=field, got=line[:100], allowed=EXAMPLE_LINE_FORM,
            hint="Mend the line, or take it out.",
        ) from None  # fmt: skip
    return prompt
