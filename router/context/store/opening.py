"""The store that a campaign file names, opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from ...errors import ContextError
from ..settings import ContextSettings
from .redis_store import RedisStore, redact_address
from .store import ByteStore, SqliteStore


def check_address(address: str) -> str:
    """Return an address that holds no secret and can be kept with a run.

    Raises
    ------
    ContextError
        If it is none, or has a password in it; it is not repeated, since what cannot be read may be a secret.
    """
    if address and (redact_address(address) != address or "@" in address):
        raise ContextError(
            "write no user, password or option into the address of the store", field="context.store",
            allowed="redis://HOST:PORT/DATABASE, rediss:// or unix://PATH",
            hint="Name the environment variable that holds the password in context.store_password_env.",
        )  # fmt: skip
    return address


@contextmanager
def open_store(settings: ContextSettings, file: Path, environment: Mapping[str, str]) -> Iterator[ByteStore]:
    """Open the store that the settings name, by default in the file.

    Raises
    ------
    ContextError
        If the variable that is to hold the password is not set.
    StoreUnusable
        If the store does not answer, or what it takes is not installed.
    """
    if not settings.store:
        with closing(SqliteStore(file)) as kept:
            yield kept
        return
    with closing(RedisStore(_address(settings, environment), place=settings.store_place)) as shared:
        yield shared


def _address(settings: ContextSettings, environment: Mapping[str, str]) -> str:
    """Return the address with the password, which nobody keeps."""
    name = settings.store_password_env
    if name is None:
        return settings.store
    if not environment.get(name):
        raise ContextError("the store's password is not there", field="context.store_password_env", got=name, hint=f"Set the environment variable {name}.")  # fmt: skip
    parts = urlsplit(settings.store)
    return parts._replace(netloc=f":{quote(environment[name], safe='')}@{parts.netloc}").geturl()
