"""Asking again what a model was too slow or too busy to answer: a bounded number of times, each failure recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..router import AccessRefused, ModelFailed, RequestRefused
from .errors import NodeTimedOut
from .protocols import SearchContext

__all__ = ["MAX_FAILURE_REASON_CHARS", "ask_with_retries", "keep_failure"]

T = TypeVar("T")

MAX_FAILURE_REASON_CHARS = 500
"""Characters of an error that are kept; providers repeat whole pages."""


async def ask_with_retries(desk: SearchContext, key: str, ask: Callable[[], Awaitable[T]]) -> T:
    """Return what `ask` brings within the time of a node; ask again where time may heal it.

    A call that is given up is taken back before the next is made. Failures are kept in the journal under the key and a
    number that goes on counting when the run is resumed.

    Raises
    ------
    NodeTimedOut, ModelFailed
        The last failure, when the retries are used up or none would heal it.
    """
    for left in range(desk.config.node_retries, -1, -1):
        try:
            return await _ask_in_time(desk.config.node_timeout_seconds, key, ask)
        except (NodeTimedOut, ModelFailed) as error:
            number = keep_failure(desk, key, error)
            if not left or isinstance(error, RequestRefused | AccessRefused):
                raise
            tries = desk.config.node_retries - left
            desk.progress("asked again", {"branch": key, "try": number, "reason": _reason(error)})
        await asyncio.sleep(desk.config.node_backoff_seconds * 2**tries)
    raise AssertionError("the last try returns or raises")


async def _ask_in_time(seconds: float, key: str, ask: Callable[[], Awaitable[T]]) -> T:
    """Return an answer that comes in time; what is late is cancelled, and waited for until it has gone."""
    try:
        async with asyncio.timeout(seconds):
            return await ask()
    except TimeoutError as error:
        raise NodeTimedOut(
            f"no answer to {key} within {seconds:g} seconds", field="agents.node_timeout_seconds", got=seconds,
            hint="Raise agents.node_timeout_seconds if the model is only slow; resume the run to ask again.",
        ) from error  # fmt: skip


def keep_failure(desk: SearchContext, key: str, error: Exception) -> int:
    """Keep a failure under the next free number, and return it."""
    number = 1
    while desk.journal.read("failure", f"{key}/{number}") is not None:
        number += 1
    desk.journal.record("failure", f"{key}/{number}", {"error": type(error).__name__, "reason": _reason(error)})
    return number


def _reason(error: Exception) -> str:
    return str(error)[:MAX_FAILURE_REASON_CHARS]
