"""Who a browser is: the person behind a session, and the page on which a user gives name and password."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ....ledger import find_account
from ....mcp_servers.access import Bucket
from ...users import PERSON_SCOPES, Signer

if TYPE_CHECKING:
    from ...users import GivenNames, Users
    from .sessions import Sessions

LOGINS_PER_NAME: Final = 5
LOGINS_IN_ALL: Final = 30
"""Logins that may be tried in a minute."""
NAME_SLOTS: Final = 1_024


@dataclass(frozen=True)
class LoginPage:
    """The page that asks for name and password; `problem` says why the last try failed."""

    problem: str


@dataclass
class LoginLimit:
    """How often a name, and anybody at all, may try a password. A restart of the desk forgets it."""

    seconds: Callable[[], float] = time.monotonic
    _names: dict[int, Bucket] = field(default_factory=dict)
    _all: Bucket | None = None

    def take(self, name: str) -> float:
        """Take one try and return 0; if none is left, return the seconds until the next one.

        Names share a fixed number of slots, so that made-up names cost no memory and look like those of users. A name
        that has no try left takes none of everybody's.
        """
        now = self.seconds()
        slot = int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:4]) % NAME_SLOTS
        own = self._names.setdefault(slot, Bucket(LOGINS_PER_NAME, now))
        self._all = self._all or Bucket(LOGINS_IN_ALL, now)
        return own.take(LOGINS_PER_NAME, now) or self._all.take(LOGINS_IN_ALL, now)


def find_signer(sessions: Sessions, users: Users, names: GivenNames, secret: str) -> Signer | None:
    """Return the person of a session with today's scopes; None where there is none.

    A session is over when its user is removed or has a new password, and one from before there were users with the
    first user. Without users the person of a launch address may do everything; an account signs with its given name.
    """
    session = sessions.find(secret)
    if session is None:
        return None
    if not users.all():
        account = session.person if session.person == find_account() else ""
        signs = names.sign(session.person) if account else session.person
        return None if session.mark else Signer(signs, frozenset(PERSON_SCOPES), account)
    user = users.find(session.person)
    return user.as_signer() if user and hmac.compare_digest(user.mark, session.mark) else None
