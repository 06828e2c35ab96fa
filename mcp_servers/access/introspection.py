"""Tokens of somebody else's OAuth server, which is asked about each of them (RFC 7662)."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ..errors import TokenRefused
from .caller import Caller
from .claims import Trust, caller_of
from .fetching import Unanswered, check_url, fetch_body
from .tokens import TOKEN_PREFIX

MAX_TOKEN_CHARS = 16_384
MAX_ACCEPTED_CACHED, MAX_REFUSED_CACHED = 10_000, 1_000
"""Answers that are kept; a stranger, who can cause refusals only, displaces nobody's good one."""
AskServer = Callable[[str], bytes]


@dataclass(frozen=True)
class IntrospectionEndpoint:
    """Where to ask, and as whom; the secret is not shown."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)

    def __call__(self, token: str) -> bytes:
        """Ask about a token."""
        form = {"token": token, "token_type_hint": "access_token"}
        return fetch_body(self.url, form, (self.client_id, self.client_secret))


class Introspection:
    """The verifier that asks. An answer holds for `seconds`, and so long may a token live on that was revoked there.

    While the other server fails (does not answer in time, or with 429 or 5xx) everybody is refused that it did not vouch
    for just now, and it is not asked again for `rest` seconds. Any other answer that does not vouch is about its token alone.
    """

    waits = True

    def __init__(
        self, trust: Trust, ask: AskServer, *, clock: Callable[[], datetime], seconds: float = 30.0, rest: float = 1.0
    ) -> None:
        if isinstance(ask, IntrospectionEndpoint):
            check_url(ask.url, "introspection")
        self._trust, self._ask, self._clock = trust, ask, clock
        self._keep, self._rest = timedelta(seconds=seconds), timedelta(seconds=rest)
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, tuple[datetime, Caller]] = OrderedDict()
        self._refused: OrderedDict[bytes, datetime] = OrderedDict()
        self._rests_until: datetime | None = None

    def verify(self, bearer: str) -> Caller:
        """Return who a token names, by what its server says; tokens of our own are never sent there."""
        if len(bearer) > MAX_TOKEN_CHARS or bearer.startswith(TOKEN_PREFIX) or not bearer.isascii():
            raise TokenRefused("it is not of that server")
        now, name = self._clock(), hashlib.sha256(bearer.encode()).digest()
        known, caller = self._known(name, now)
        if not known:
            caller = self._asked(bearer, now)
            self._keep_answer(name, caller, now)
        if caller is None or (caller.expires is not None and now >= caller.expires):
            raise TokenRefused("its server does not vouch for it")
        return caller

    def _known(self, name: bytes, now: datetime) -> tuple[bool, Caller | None]:
        with self._lock:
            if (found := self._kept.get(name)) is not None and now < found[0]:
                return True, found[1]
            return now < self._refused.get(name, now), None

    def _keep_answer(self, name: bytes, caller: Caller | None, now: datetime) -> None:
        """Keep the newest answer; the oldest of its kind makes room."""
        until = now + self._keep
        with self._lock:
            self._kept.pop(name, None)
            self._refused.pop(name, None)
            if caller is None:
                self._refused[name] = until
                while len(self._refused) > MAX_REFUSED_CACHED:
                    self._refused.popitem(last=False)
            else:
                self._kept[name] = (until, caller)
                while len(self._kept) > MAX_ACCEPTED_CACHED:
                    self._kept.popitem(last=False)

    def _asked(self, bearer: str, now: datetime) -> Caller | None:
        """Ask, and return who it is; None where the server says no or says it of somebody we do not trust."""
        if self._rests_until is not None and now < self._rests_until:
            raise TokenRefused("its server did not answer a moment ago")
        try:
            told: Any = json.loads(self._ask(bearer))
        except (ValueError, RecursionError):
            return None
        except (Unanswered, OSError) as error:
            if isinstance(error, Unanswered) and not error.failing:
                return None
            self._rests_until = now + self._rest
            raise TokenRefused(f"its server does not answer: {type(error).__name__}") from None
        if not isinstance(told, dict) or told.get("active") is not True:
            return None
        try:
            return caller_of(told, self._trust, now)
        except TokenRefused:
            return None
