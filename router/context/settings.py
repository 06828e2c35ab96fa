"""The section `context` of a campaign file: which documents, where they are kept, how much of them is told."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from ..calls.task import Sensitivity
from .index import Cutting
from .store.store import StorePlace

CHUNK_TOKENS = Cutting().most_tokens


class DocumentSettings(BaseModel):
    """A file, or a folder of files, and what holds of all in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path = Field(description="a file (.txt, .md), or a folder of such files")
    sensitivity: Sensitivity | None = Field(default=None, description="by default that of the agents")
    known: date | None = Field(
        default=None, description="day since which it could be known; told only if search ends later"
    )
    released: str = Field(
        default="", max_length=500, description="why it is told although it seems to speak to machines"
    )


def _form(given: Any) -> str:
    return "record" if isinstance(given, dict | DocumentSettings) else "path"


NamedDocument: TypeAlias = Annotated[
    Annotated[Path, Tag("path")] | Annotated[DocumentSettings, Tag("record")], Discriminator(_form)
]
"""A path, or a record of it."""


class ContextSettings(BaseModel):
    """A person's documents, read once and told to the Idea agent by passage. Paths start from the campaign file's folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    documents: tuple[NamedDocument, ...] = Field(
        default=(),
        max_length=1_000,
        description="files and folders, by path or as {path, sensitivity, known, released}",
    )
    passage_tokens: int = Field(
        default=1_600, ge=CHUNK_TOKENS, le=50_000, description="tokens of the passages that are told in a round"
    )
    summaries: Literal["extract", "model", "none"] = Field(
        default="extract",
        description="of each document that is told: sentences of its own, chosen by rule; a model's words; or none",
    )
    store: str = Field(
        default="", description="redis://HOST:PORT/DATABASE, rediss:// or unix://PATH; else context.db of the workspace"
    )
    store_place: StorePlace = Field(default="remote", description="local: a server on machines of yours")
    store_password_env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="NAME of the environment variable that holds the store's password",
    )

    @property
    def named(self) -> list[DocumentSettings]:
        """Return the documents, each with what is said of it."""
        return [each if isinstance(each, DocumentSettings) else DocumentSettings(path=each) for each in self.documents]

    def beside(self, folder: Path) -> ContextSettings:
        """Return the settings with paths that start from a folder made absolute."""
        documents = tuple(each.model_copy(update={"path": (folder / each.path).absolute()}) for each in self.named)
        return self.model_copy(update={"documents": documents})
