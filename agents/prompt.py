"""Prompts: files with a version, named in every task by their hash."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from ..router import Message
from .errors import PromptError
from .protocols import Json

FOLDER = Path(__file__).parent / "prompts"


@dataclass(frozen=True)
class Prompt:
    """One prompt file: its name, version, text without the front matter, and the hash of the whole file."""

    name: str
    version: str
    text: str
    digest: str

    def messages(self, context: Json) -> tuple[Message, ...]:
        """Return the stable text, then the context as one JSON block in the order given: what changes most comes last."""
        block = json.dumps(context, ensure_ascii=False, allow_nan=False)
        return Message(role="system", content=self.text), Message(role="user", content=block)


@cache
def load_prompts(*names: str) -> Prompt:
    """Return several prompts as one: the texts one after the other, and a digest of all."""
    first, *more = map(load_prompt, names)
    if not more:
        return first
    parts = [first, *more]
    text = "\n".join(each.text for each in parts)
    name, version = ("+".join(getattr(each, part) for each in parts) for part in ("name", "version"))
    return Prompt(name, version, text, sha256("".join(each.digest for each in parts).encode()).hexdigest())


@cache
def load_prompt(name: str) -> Prompt:
    """Return a prompt that ships with the room."""
    path = FOLDER / f"{name}.md"
    if not path.is_file():
        names = sorted(file.stem for file in FOLDER.glob("*.md"))
        raise PromptError(f"there is no prompt {name!r}", field="prompt", got=name, allowed=names)
    return read_prompt(name, path.read_bytes())


def read_prompt(name: str, body: bytes) -> Prompt:
    """Return a prompt from a file's bytes: front matter with `version:` between two lines `---`, then the text."""
    head, mark, text = body.decode().removeprefix("---\n").partition("\n---\n")
    facts = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    if not mark or "version" not in facts:
        raise PromptError(
            f"prompt {name!r} has no version",
            field="version",
            hint="begin the file with three lines: ---, version: 1, ---",
        )
    return Prompt(name, facts["version"], text.strip() + "\n", sha256(body).hexdigest())
