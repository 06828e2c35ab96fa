"""What says who shows a bearer token."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from ..errors import TokenRefused
from .caller import Caller


class TokenVerifier(Protocol):
    """Says who shows a bearer token. It may be used from several threads."""

    @property
    def waits(self) -> bool:
        """Whether it may wait for the network, so that an event loop must ask it in a thread."""

    def verify(self, bearer: str) -> Caller:
        """Return who shows this token; `TokenRefused`, always in the same words, if it is not accepted."""


class AnyOf:
    """Several verifiers, asked in turn: the first that accepts a token says who it is."""

    def __init__(self, verifiers: Sequence[TokenVerifier]) -> None:
        self._verifiers = tuple(verifiers)

    @property
    def waits(self) -> bool:
        """Whether one of them may wait for the network."""
        return any(each.waits for each in self._verifiers)

    def verify(self, bearer: str) -> Caller:
        """Return who shows this token; `TokenRefused` if none accepts it."""
        for each in self._verifiers:
            with suppress(TokenRefused):
                return each.verify(bearer)
        raise TokenRefused("no verifier accepts it")
