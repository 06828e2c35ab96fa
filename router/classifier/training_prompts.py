"""The training prompts: handwritten templates with fillings, in several voices, and noise for them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ClassifierUnusable
from .prompt_reading import INTENTS

TRAINING_FOLDER = Path(__file__).with_name("training")
FILLINGS = 3
"""Maximum prompts of one template."""
_OPENERS = (
    "Hi team, ", "hey, quick one: ", "Good morning! Hope you are well. ", "ok so ", "Sorry to bother you again - ",
    "Please help me with this: ", "Thanks for the last answer. Now: ", "(from my phone) ", "Bonjour, ", "fyi / ask: ",
    "hello hello ", "Dear all,\n\n", "One more thing: ", "Right, next one. ",
    "Hey there! Hope the week is going fine. ",
    "I have a question. ", "When you have a minute: ", "yo ", "Morning. Coffee is in, so here goes: ", "If I may: ",
    "Before the meeting, please: ", "Could you please do this for me? ", "Asking for a colleague: ", "Hallo zusammen, ",
)  # fmt: skip  # a table
_CLOSERS = (
    " Thanks!", " thx", " Much appreciated.", " No rush.", " Cheers, Anna", " (asap pls)", " Let me know.", " :)",
    " Best regards", " ...", " ty", " Thanks a lot in advance, and have a good weekend.", "\n\nKind regards\nM.",
    " pls",
    " Appreciate the help as always.", " Merci", " I owe you one.", " Take your time.", " Need it before noon.", " Ta.",
)  # fmt: skip  # a table
_FRAMES = (
    "You are a helpful assistant of a research desk.\n\n{}", "### Task\n{}\n### Answer", "User: {}\nAssistant:",
    "<task>{}</task>", "Answer in JSON.\n{}", "[INST] {} [/INST]", '{{"prompt": "{}"}}', "Q: {}\nA:",
    "Follow the instructions below carefully.\n---\n{}\n---", "context: none\nrequest: {}\nformat: free text",
    "You are an expert. Be brief and exact.\n\nUser message:\n{}", "<user>\n{}\n</user>\n<assistant>",
    "System: be concise.\nHuman: {}", "Input:\n{}\n\nOutput:", "```\n{}\n```", "BEGIN REQUEST\n{}\nEND REQUEST",
    "# Instruction\n\n{}\n\n# Response\n", '{{"role": "user", "content": "{}"}}', "Reply in English only.\n{}",
    "Think before you answer.\n\n{}\n\nReturn only the final answer.", "ticket 4711\nfrom: desk\nbody: {}",
    "|user| {} |end|", "Do not make things up. {}", "Here is a message from a user; handle it.\n>>> {}",
)  # fmt: skip  # a table
SLIP_SHARE = 0.06
"""Share of a text's longer words that get a wrong, missing, doubled or swapped letter."""
MIN_LETTERS_TO_SLIP = 4


@dataclass(frozen=True)
class Example:
    """One prompt with its intent and difficulty; `template` names its template, `voice` its writer."""

    prompt: str
    intent: str
    hard: bool
    template: str
    voice: str


def read_examples(folder: Path = TRAINING_FOLDER) -> list[Example]:
    """Return all examples in the order of the files.

    Raises
    ------
    ClassifierUnusable
        A line is no template, names an unknown intent, or has slots that its text lacks.
    """
    examples = [example for path in sorted(folder.glob("*.jsonl")) for example in _read(path)]
    if not examples:
        raise ClassifierUnusable("there are no training prompts", field="training", got=str(folder))
    return examples


def _read(path: Path) -> Iterator[Example]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            slots: Mapping[str, Sequence[str]] = row.get("slots") or {}
            hard, intent = {"low": False, "high": True}[row["difficulty"]], INTENTS[INTENTS.index(row["intent"])]
            for prompt in _fill_template(row["template"], slots):
                yield Example(prompt, intent, hard, f"{path.stem}/{number}", path.stem)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise ClassifierUnusable(
                f"line {number} of {path.name} is no template: {error}",
                field="training",
                got=line[:100],
                allowed='{"intent": ..., "difficulty": "low" or "high", "template": ..., "slots": {...}}',
            ) from None


def take_one_per_template(examples: Sequence[Example]) -> list[Example]:
    """Return the first prompt of each template; its other prompts are near-duplicates."""
    return list({example.template: example for example in reversed(examples)}.values())[::-1]


def read_attachments(folder: Path = TRAINING_FOLDER / "attachments") -> list[str]:
    """Return texts as people attach them to a request: code, logs, tables, JSON, formulas, passages, threads."""
    lines = (line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines())
    return [json.loads(line)["text"] for line in lines]


def _fill_template(template: str, slots: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a template with its fillings; every further prompt takes the next value of each slot."""
    for turn in range(min(max([len(values) for values in slots.values()], default=1), FILLINGS)):
        prompt = template
        for place, (name, fillings) in enumerate(slots.items()):
            if f"{{{name}}}" not in template:
                raise ValueError(f"no place for {name}")
            prompt = prompt.replace(f"{{{name}}}", fillings[(turn + place) % len(fillings)])
        yield prompt


def _add_typos(text: str, draw: random.Random, _: slice) -> str:
    return " ".join(
        _slip_letter(word, draw) if len(word) >= MIN_LETTERS_TO_SLIP and draw.random() < SLIP_SHARE else word
        for word in text.split(" ")
    )


def _slip_letter(word: str, draw: random.Random) -> str:
    at = draw.randrange(len(word) - 1)
    changed = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[: at + 1] + word[at:],
        word[:at] + draw.choice("abcdefghijklmnopqrstuvwxyz") + word[at + 1 :],
    )
    return draw.choice(changed)


def _change_case(text: str, draw: random.Random, _: slice) -> str:
    return draw.choice([str.lower, str.upper, str.title])(text)


def _add_chatter(text: str, draw: random.Random, part: slice) -> str:
    return f"{draw.choice(_OPENERS[part])}{text}{draw.choice(_CLOSERS[part])}"


def _add_wrapper(text: str, draw: random.Random, part: slice) -> str:
    return draw.choice(_FRAMES[part]).format(text)


NOISES: Mapping[str, Callable[[str, random.Random, slice], str]] = {
    "typos": _add_typos,
    "case": _change_case,
    "chatter": _add_chatter,
    "wrapper": _add_wrapper,
}


def add_noise(text: str, kind: str, seed: int, *, learned: bool) -> str:
    """Return a text with one kind of noise; the same seed gives the same noise.

    Half of the chatter and frames is for training (`learned`); robustness is measured with the other half.
    """
    part = slice(0, None, 2) if learned else slice(1, None, 2)
    return NOISES[kind](text, random.Random(f"{seed}/{kind}/{text}"), part)
