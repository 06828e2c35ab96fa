"""The intent of a prompt, from role and text, and the user's own intents with their example prompts.

The examples are checked before a classifier is trained on them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from ...ledger.files import read_given_text
from ..classifier import INTENTS, PromptReading
from ..errors import ExamplesRefused

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
"""Prior probability of each intent, by role; an intent that a role never sends is not listed."""
CALL_INTENTS: Mapping[str, str] = {
    "hypotheses": "factor_idea",
    "formulas": "code",
    "repair": "debug",
    "critique": "critique",
    "account": "summary",
}
"""Intent by the name that our own agents, and the desk, give their calls."""
MIN_EXAMPLES, MAX_EXAMPLES = 5, 50
MAX_OWN_INTENTS = 20
FIELD = "routing.own_intents"
EXAMPLE_LINE_FORM = '{"prompt": "..."}, one a line'


def infer_intent(
    role: str | None, declared: str | None, text: PromptReading, own: Mapping[str, Mapping[str, float]] | None = None
) -> tuple[str, dict[str, float]]:
    """Return the likeliest intent, and the probability of each intent given role and text.

    A declared intent is taken as it is, with one exception: the text decides where one of our agents declares it and
    the user's prior of that role (`own`) contains an intent of the user's own. Otherwise the role's prior multiplies
    the text's probabilities (Bayes' rule). An unknown role has no prior, and a role that is the name of an intent means
    that intent.

    Parameters
    ----------
    role, declared : str or None
        The caller's role and its declared intent.
    text : PromptReading
        The classifier's reading of the text.
    own : mapping, optional
        Priors of the user's roles; they replace the built-in ones.
    """
    intent = declared if declared in INTENTS else CALL_INTENTS.get(declared or "", declared)
    role_prior = (own or {}).get(role or "")
    weigh_text = declared in CALL_INTENTS and any(
        name in text.intents and name not in INTENTS for name in role_prior or ()
    )
    if intent and not weigh_text:
        return intent, {intent: 1.0}
    prior = role_prior or ROLE_INTENTS.get(role or "") or ({role: 1.0} if role in text.intents else None)
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
        """Return the intent with the examples of its file, so that its record needs no file."""
        if self.file is None:
            return self
        field = f"{FIELD}.{name}"
        if self.examples:
            raise ExamplesRefused(
                f"{field} has examples and a file",
                field=field,
                got=str(self.file),
                allowed="examples or file",
                hint="Put all of them into one of the two.",
            )
        return self.model_copy(update={"examples": _read(f"{field}.file", folder / self.file), "file": None})


def check_intent_names(own: Mapping[str, OwnIntent]) -> None:
    """Refuse intent names that are taken or invalid, and more than `MAX_OWN_INTENTS` intents.

    Raises
    ------
    ExamplesRefused
        With the refused name.
    """
    reserved = {*INTENTS, *CALL_INTENTS}
    for name in own:
        if name in reserved or not name.isidentifier() or not name.islower():
            problem = "is an intent of ours" if name in reserved else "is no name of an intent"
            raise ExamplesRefused(
                f"{FIELD}: {name!r} {problem}",
                field=FIELD,
                got=name,
                allowed=f"small letters, digits and _, and none of {', '.join(sorted(reserved))}",
                hint="Call it something else, such as options_surface.",
            )
    if len(own) > MAX_OWN_INTENTS:
        raise ExamplesRefused(
            f"{FIELD} has too many intents",
            field=FIELD,
            got=len(own),
            allowed=f"at most {MAX_OWN_INTENTS}",
            hint="Join those that go to the same tier.",
        )


def collect_examples(own: Mapping[str, OwnIntent]) -> dict[str, tuple[str, ...]]:
    """Return the examples by intent; a relative path of a file starts from the current folder.

    Raises
    ------
    ExamplesRefused
        If an intent has too few or too many examples, an example is empty or repeated, or a file cannot be read.
    """
    check_intent_names(own)
    examples = {name: intent.beside(name, Path()).examples for name, intent in own.items()}
    places: dict[str, str] = {}
    for name, texts in examples.items():
        field = f"{FIELD}.{name}.examples"
        if not MIN_EXAMPLES <= len(texts) <= MAX_EXAMPLES:
            raise ExamplesRefused(
                f"{field}: {len(texts)} {'is' if len(texts) == 1 else 'are'} too "
                f"{'few' if len(texts) < MIN_EXAMPLES else 'many'}",
                field=field,
                got=len(texts),
                allowed=f"{MIN_EXAMPLES} to {MAX_EXAMPLES} prompts",
                hint="Take prompts as they are really asked, in different words.",
            )
        _check_texts(field, name, texts, places)
    return examples


def _check_texts(field: str, name: str, texts: Sequence[str], places: dict[str, str]) -> None:
    """Refuse empty and repeated examples; `places` has the place of each earlier one, and is extended."""
    for number, text in enumerate(texts, 1):
        spelled = " ".join(text.casefold().split())
        if not any(letter.isalnum() for letter in spelled):
            raise ExamplesRefused(
                f"{field}: number {number} holds no word",
                field=field,
                got=text[:100],
                allowed="a prompt",
                hint="Take it out.",
            )
        place = f"number {number} of {name}"
        if earlier := places.get(spelled):
            raise ExamplesRefused(
                f"{field}: number {number} is the same as {earlier}",
                field=field,
                got=text[:100],
                allowed="each prompt once, case and spacing aside",
                hint="Take one of the two out.",
            )
        places[spelled] = place


def _read(field: str, path: Path) -> tuple[str, ...]:
    try:
        lines = read_given_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise ExamplesRefused(
            f"{field}: cannot read {path}: {problem}",
            field=field,
            got=str(path),
            allowed=f"a file of lines {EXAMPLE_LINE_FORM}",
            hint="A path starts from the folder of the settings file.",
        ) from None
    return tuple(_parse_line(field, path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _parse_line(field: str, path: Path, number: int, line: str) -> str:
    try:
        prompt = json.loads(line)["prompt"]
        if not isinstance(prompt, str):
            raise TypeError
    except (ValueError, TypeError, KeyError):
        raise ExamplesRefused(
            f"{field}: line {number} of {path.name} holds no prompt",
            field=field,
            got=line[:100],
            allowed=EXAMPLE_LINE_FORM,
            hint="Mend the line, or take it out.",
        ) from None
    return prompt
