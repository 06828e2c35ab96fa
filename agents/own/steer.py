"""What a person asks the agents to look for: a goal in plain words, what to avoid, which fields may be used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from ...factors.describe import find_mention, stems

__all__ = ["Steer"]

PATHS = ("seed_library", "hypotheses", "prompts")


def _check_words(text: str) -> str:
    if not stems(text):
        raise ValueError("must hold a word that says something, such as momentum")
    return text


SteerWords = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_check_words)]


class Steer(BaseModel):
    """What to look for and where, and the parts that a person brings along. Nothing here can lower a bar of the gate.

    Words are compared by their stems, in mechanisms' names and statements. Paths start from the campaign file's folder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    goal: str = Field(default="", max_length=2_000, description="what to look for, in plain words")
    avoid: tuple[SteerWords, ...] = Field(
        default=(), max_length=50, description="mechanisms, by name or by words, that are not to be proposed"
    )
    focus: tuple[SteerWords, ...] = Field(
        default=(), max_length=50, description="mechanisms, by name or by words, that come before any other"
    )
    fields: tuple[str, ...] = Field(
        default=(), max_length=200, description="fields that formulas may read; none named: all of the panel"
    )

    seed_library: Path | None = Field(
        default=None, description="formulas that are scored first: a file of `library export`, or a list"
    )
    hypotheses: Path | None = Field(
        default=None, description="YAML of hypotheses that are worked on before the agents'"
    )
    prompts: Path | None = Field(default=None, description="folder with idea.md, factor.md or eval.md of one's own")
    agent: str = Field(
        default="", max_length=500,
        description="an agent of one's own: module:function or file.py:function",
    )  # fmt: skip
    agent_hypotheses: int = Field(default=2, ge=1, le=64, description="hypotheses of a round that are that agent's")
    agent_timeout_s: float = Field(default=60.0, gt=0, le=86_400, description="seconds that it may think")

    @model_validator(mode="after")
    def _check_avoided(self) -> Steer:
        both = [entry for entry in self.focus if find_mention((entry,), self.avoid)]
        if both:
            raise ValueError(f"focus and avoid both speak of {', '.join(both)}: leave it in one of them")
        return self

    @field_validator("agent")
    @classmethod
    def _check_function_name(cls, text: str) -> str:
        where, _, function = text.rpartition(":")
        if text and not (where.strip() and function.isidentifier()):
            raise ValueError("must be module:function or file.py:function")
        return text

    def record(self) -> dict[str, Any]:
        """Return what the agents are told, in an order that never changes; nothing where nothing was asked."""
        told = {"goal": self.goal, "avoid": list(self.avoid), "focus": list(self.focus), "fields": list(self.fields)}
        return {name: value for name, value in told.items() if value}

    def avoided(self, mechanism: str, statement: str) -> str:
        """Return the first entry of `avoid` that a hypothesis speaks of, empty where there is none."""
        return find_mention((mechanism, statement), self.avoid)

    def beside(self, folder: Path) -> Steer:
        """Return the settings with paths that start from a folder made absolute."""
        paths = {name: (folder / path).absolute() for name in PATHS if (path := getattr(self, name))}
        where, _, function = self.agent.rpartition(":")
        named = {"agent": f"{(folder / where).absolute()}:{function}"} if where.endswith(".py") else {}
        return self.model_copy(update={**paths, **named})
