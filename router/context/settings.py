"""The section `context` of a campaign file: the documents, how much of them agents see, and their store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from ..calls.task import Sensitivity
from ..errors import ContextError
from .chunks import CHUNK_TOKENS
from .redis_store import RedisStore, redact_address
from .store import ByteStore, SqliteStore, StorePlace


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


def _find_form(entry: Any) -> str:
    return "record" if isinstance(entry, dict | DocumentSettings) else "path"


NamedDocument: TypeAlias = Annotated[
    Annotated[Path, Tag("path")] | Annotated[DocumentSettings, Tag("record")], Discriminator(_find_form)
]
"""A path, or a record of it."""


class ContextSettings(BaseModel):
    """A person's documents, read once and told to the Idea agent by passage."""

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
        """Return the documents, each with its settings."""
        return [
            entry if isinstance(entry, DocumentSettings) else DocumentSettings(path=entry) for entry in self.documents
        ]

    def beside(self, folder: Path) -> ContextSettings:
        """Return the settings with paths resolved against `folder`."""
        documents = tuple(entry.model_copy(update={"path": (folder / entry.path).absolute()}) for entry in self.named)
        return self.model_copy(update={"documents": documents})


def check_address(address: str) -> str:
    """Return an address that contains no secret and can be recorded with a run.

    Raises
    ------
    ContextError
        If it is invalid or has a password. The error does not repeat it, since it may contain a secret.
    """
    if address and (redact_address(address) != address or "@" in address):
        raise ContextError(
            "write no user, password or option into the address of the store",
            field="context.store",
            allowed="redis://HOST:PORT/DATABASE, rediss:// or unix://PATH",
            hint="Name the environment variable that holds the password in context.store_password_env.",
        )
    return address


@contextmanager
def open_store(settings: ContextSettings, file: Path, environment: Mapping[str, str]) -> Iterator[ByteStore]:
    """Open the configured store; by default the SQLite store in `file`.

    Raises
    ------
    ContextError
        If the environment variable of the password is not set.
    StoreUnusable
        If the store does not answer, or needs a package that is not installed.
    """
    if not settings.store:
        with closing(SqliteStore(file)) as own_store:
            yield own_store
        return
    with closing(RedisStore(_build_address(settings, environment), place=settings.store_place)) as shared_store:
        yield shared_store


def _build_address(settings: ContextSettings, environment: Mapping[str, str]) -> str:
    """Return the address with the password, which is not recorded."""
    name = settings.store_password_env
    if name is None:
        return settings.store
    if not environment.get(name):
        raise ContextError(
            "the store's password is not there",
            field="context.store_password_env",
            got=name,
            hint=f"Set the environment variable {name}.",
        )
    parts = urlsplit(settings.store)
    return parts._replace(netloc=f":{quote(environment[name], safe='')}@{parts.netloc}").geturl()
