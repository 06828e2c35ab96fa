"""Live pages: a part of a page is written again whenever it has changed, and sent as server-sent events."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

if TYPE_CHECKING:
    from ...ledger import Ledger

LOOK_SECONDS: Final = 1.0
"""How often a live page looks for something new."""
MAX_STREAMS: Final = 64
"""Live pages that are served at once; another one is refused and can be loaded again by hand."""
LOOKING_THREADS: Final = 2
"""Threads that look for all live pages, so that they take none from the other pages and memory stays flat."""

Opened = Callable[[], AbstractContextManager["Ledger"]]


@dataclass(frozen=True)
class LiveRequest:
    """Who watches: how the record is opened, its workspace, whether the session still stands, and the request."""

    opened: Opened
    workspace: Path
    admits: Callable[[], bool]
    request: Request


class SharedTexts:
    """What live pages show: written once a second for each address, however many pages follow it.

    So nothing in it may depend on who watches.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._texts = dict[tuple[Path, str], tuple[float, str]]()

    def read(self, live: LiveRequest, write: Callable[[LiveRequest], str]) -> str:
        """Return the text of an address; it is written anew where it is older than half a second."""
        place = (live.workspace, f"{live.request.url.path}?{live.request.url.query}")
        with self._lock:
            at, text = self._texts.pop(place, (-math.inf, ""))
            if time.monotonic() - at > LOOK_SECONDS / 2:
                text = write(live)
                at = time.monotonic()
            self._texts[place] = at, text
            while len(self._texts) > MAX_STREAMS:
                self._texts.pop(next(iter(self._texts)))
            return text


Stream = Callable[[LiveRequest], Response]
_open_streams = 0
_looking = CapacityLimiter(LOOKING_THREADS)
_texts = SharedTexts()


def stream_page(live: LiveRequest, read: Callable[[LiveRequest], str]) -> Response:
    """Return a stream of what a function writes, sent whenever it differs; it ends where that is empty."""
    if _open_streams >= MAX_STREAMS:
        return Response("Too many live pages are open.\n", 503)
    return StreamingResponse(_watch(live, read), media_type="text/event-stream")


async def _watch(live: LiveRequest, read: Callable[[LiveRequest], str]) -> AsyncIterator[str]:
    def look() -> str:
        return _texts.read(live, read) if live.admits() else ""

    global _open_streams
    _open_streams += 1
    try:
        shown = ""
        while not await live.request.is_disconnected():
            text = await to_thread.run_sync(look, limiter=_looking)
            if not text:
                return
            if text != shown:
                shown = text
                yield "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        _open_streams -= 1
