"""The branches of one super-step: how many are asked at once, and what becomes of one that fails for good.

No branch ends while another is still under way: a call that is paid for is heard out and recorded, whatever happens
beside it. Then a branch that failed is given up if any other was answered. Where none was, the fault is not the branch's:
nothing is recorded, the error goes on its way, and the run is resumed when the models answer again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..router import AccessRefused, ModelFailed
from .errors import NodeTimedOut, NoUsableReply
from .protocols import Json, SearchContext
from .retry import MAX_FAILURE_REASON_CHARS, keep_failure

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AnswerPlace", "BranchBarrier"]

FAULTS = (ModelFailed, NodeTimedOut, NoUsableReply)
"""What may be one branch's own misfortune; anything else ends the search, to be resumed."""


@dataclass(frozen=True)
class AnswerPlace:
    """Where one branch's answer is recorded: the kind and key of the journal, and the keys of all branches of the step."""

    kind: str
    key: str
    all: Sequence[str]


class BranchBarrier:
    """Counts the branches of a super-step as they are answered or fail; made anew for every process."""

    def __init__(self, desk: SearchContext) -> None:
        self._desk = desk
        self._slots = asyncio.Semaphore(desk.config.max_concurrency)
        self._failed: set[tuple[str, str]] = set()
        self._changed = asyncio.Event()

    async def asked(self, post: AnswerPlace, ask: Callable[[], Awaitable[Json]], nothing: Json) -> Json:
        """Return a branch's answer; `nothing`, with the reason, if it fails for good while others are answered.

        Raises
        ------
        ModelFailed, NodeTimedOut, NoUsableReply
            Of this branch, when no other branch of the step was answered either.
        Exception
            What no retry heals, once the other branches have been heard.
        """
        try:
            async with self._slots:
                answer = await ask()
        except Exception as error:
            self._failed.add((post.kind, post.key))
            self._tell()
            await self._await_others(post)
            if not isinstance(error, FAULTS) or isinstance(error, AccessRefused) or not self._answered(post):
                if isinstance(error, NoUsableReply):
                    keep_failure(self._desk, error.place, error)
                raise
            return self._given_up(post, error, nothing)
        self._tell()
        return answer

    def _tell(self) -> None:
        """Wake those who wait for the others."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _await_others(self, post: AnswerPlace) -> None:
        """Wait until every branch of the step was answered or has failed."""
        while not all((post.kind, key) in self._failed or self._kept(post.kind, key) for key in post.all):
            await self._changed.wait()

    def _kept(self, kind: str, key: str) -> bool:
        return self._desk.journal.read(kind, key) is not None

    def _answered(self, post: AnswerPlace) -> bool:
        """Tell whether any branch of the step was answered; one that was given up before is not counted."""
        return any(
            "given_up" not in (self._desk.journal.read(post.kind, key) or {"given_up": True}) for key in post.all
        )

    def _given_up(self, post: AnswerPlace, error: Exception, nothing: Json) -> Json:
        """Write down that a branch is given up, and why."""
        if isinstance(error, NoUsableReply):
            body = {**nothing, "failed": error.said}
            self._desk.journal.record(post.kind, post.key, body)
            return body
        reason = str(error)[:MAX_FAILURE_REASON_CHARS]
        body = {**nothing, "failed": reason, "given_up": True}
        self._desk.journal.record(post.kind, post.key, body)
        self._desk.progress("given up", {"branch": post.key, "reason": reason})
        return body
