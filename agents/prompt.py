"""Prompts: files with a version, identified in every task by their hash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..router import Message
from .errors import AgentError

PROMPT_FOLDER = Path(__file__).parent / "prompts"
NO_PROMPTS: Mapping[str, Prompt] = MappingProxyType({})
MAX_PAGE_CHARS = 40_000
"""Characters of a person's own page."""


@dataclass(frozen=True)
class Prompt:
    """One prompt file: its name, version, text without the front matter, and the hash of the whole file."""

    name: str
    version: str
    text: str
    digest: str

    def messages(self, context: dict[str, Any]) -> tuple[Message, ...]:
        """Return the stable text, then the context as one JSON block in the given order, most variable parts last."""
        block = json.dumps(context, ensure_ascii=False, allow_nan=False)
        return Message(role="system", content=self.text), Message(role="user", content=block)


def load_prompts(*names: str, own: Mapping[str, Prompt] = NO_PROMPTS) -> Prompt:
    """Return several prompts as one: joined texts and a digest of all; a person's own pages take precedence."""
    first, *more = (own[name] if name in own else load_prompt(name) for name in names)
    if not more:
        return first
    parts = [first, *more]
    text = "\n".join(page.text for page in parts)
    name, version = ("+".join(getattr(page, part) for page in parts) for part in ("name", "version"))
    return Prompt(name, version, text, sha256("".join(page.digest for page in parts).encode()).hexdigest())


@cache
def load_prompt(name: str) -> Prompt:
    """Return a prompt that ships with the room."""
    path = PROMPT_FOLDER / f"{name}.md"
    if not path.is_file():
        names = sorted(file.stem for file in PROMPT_FOLDER.glob("*.md"))
        raise AgentError(f"there is no prompt {name!r}", field="prompt", got=name, allowed=names, code="prompt")
    return read_prompt(name, path.read_bytes())


def read_prompt(name: str, body: bytes) -> Prompt:
    """Return a prompt from a file's bytes: front matter with `version:` between two lines `---`, then the text."""
    head, mark, text = body.decode().removeprefix("---\n").partition("\n---\n")
    facts = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    if not mark or "version" not in facts:
        raise AgentError(
            f"prompt {name!r} has no version",
            field="version",
            hint="begin the file with three lines: ---, version: 1, ---",
            code="prompt",
        )
    if facts.get("name", name) != name:
        raise AgentError(
            f"the header of {name}.md says that it is the page {facts['name']!r}",
            field="name",
            got=facts["name"],
            allowed=name,
            hint="Name the file after the page that it replaces, or mend the header.",
            code="prompt",
        )
    return Prompt(name, facts["version"], text.strip() + "\n", sha256(body).hexdigest())


def read_shipped_pages() -> dict[str, str]:
    """Return the prompt pages that ship with the room: the whole file by name."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(PROMPT_FOLDER.glob("*.md"))}


def read_folder(folder: Path) -> dict[str, str]:
    """Return a person's own prompt pages: the whole file by the name of the shipped page that it replaces.

    Raises
    ------
    AgentError
        The folder does not exist or holds no page; or a page replaces nothing, has no version, is empty, or is too
        long.
    """
    names = sorted(file.stem for file in PROMPT_FOLDER.glob("*.md"))
    if not folder.is_dir():
        raise AgentError(f"there is no folder {folder.name!r}", field="steer.prompts", got=folder.name, code="prompt")
    pages = sorted(folder.glob("*.md"))
    if irregular := [path.name for path in pages if not path.is_file()]:  # reading a pipe would wait for ever
        raise AgentError(f"{irregular[0]} is not a regular file", field="steer.prompts", got=irregular, code="prompt")
    bodies = {path.stem: path.read_bytes() for path in pages}
    strange = sorted({*bodies} - {*names})
    if strange or not bodies:
        message = f"{', '.join(strange)} replaces no page" if strange else f"{folder.name} holds no page"
        raise AgentError(
            message, field="steer.prompts", got=strange, allowed=[f"{name}.md" for name in names], code="prompt"
        )
    return {name: _check_page(name, body) for name, body in bodies.items()}


def _check_page(name: str, body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise AgentError(f"{name}.md is no UTF-8 text", field="steer.prompts", got=name, code="prompt") from None
    page = read_prompt(name, body)
    if not page.text.strip() or len(text) > MAX_PAGE_CHARS:
        allowed = f"1 to {MAX_PAGE_CHARS} characters"
        raise AgentError(
            f"{name}.md holds {len(text)} characters", field="steer.prompts", got=name, allowed=allowed, code="prompt"
        )
    return text
