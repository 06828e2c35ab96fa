"""Hostile code, kept as data: one plain file a class, read and never imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["BARE", "LAYERED", "NEVER", "Snippet", "read"]

FOLDER = Path(__file__).with_name("snippets")
MARK = "=== "
BARE, LAYERED, NEVER = "bare", "layered", "never"
"""What a class may be run under while layers are taken away: nothing at all, some layer, never."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """One piece of hostile code.

    Attributes
    ----------
    group : str
        Its class, the name of its file.
    name : str
        Its name within the class.
    proof : str
        What would prove an escape, in words.
    code : str
        Source that defines `factor(panel)`; names of the ground (SECRET, TCP and others) are put before it.
    options : Mapping[str, str]
        `wall` (seconds), `rows` (days that it may see), `expect` (`error`: an answer is an escape), `twice`, `prove`,
        `sweep`.
    ablation : str
        How many layers must be left when it runs.
    """

    group: str
    name: str
    proof: str
    code: str
    options: Mapping[str, str] = field(default_factory=dict)
    ablation: str = NEVER

    @property
    def title(self) -> str:
        """Return class and name."""
        return f"{self.group}/{self.name}"


def read(group: str | None = None) -> list[Snippet]:
    """Return the snippets of one class, or all of them, in the order of the files."""
    paths = sorted(FOLDER.glob("*.txt")) if group is None else [FOLDER / f"{group}.txt"]
    return [snippet for path in paths for snippet in _parsed(path)]


def _parsed(path: Path) -> Iterator[Snippet]:
    head, *parts = path.read_text(encoding="utf-8").split(f"\n{MARK}")
    ablation = next(line.split(": ")[1] for line in head.splitlines() if line.startswith("Ablation: "))
    for part in parts:
        title, _, code = part.partition("\n")
        name, proof, *options = (word.strip() for word in title.split("|"))
        pairs = (word.partition("=") for word in " ".join(options).split())
        yield Snippet(path.stem, name, proof, code.strip() + "\n", {key: text for key, _, text in pairs}, ablation)
