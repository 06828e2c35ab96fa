"""Who is at the desk: addresses that open it once, and the sessions that they begin.

Both are random; a file of the workspace holds their digests alone, so that a session survives a restart of the server
and a copy of the file opens nothing. A secret of 256 random bits cannot be guessed, so its plain SHA-256 suffices.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ....ledger import read_json, write_json
from ....ledger.database import wait_for_lock
from ....ledger.files import make_folder

DESK_FOLDER, SESSIONS_FILE = "desk", "sessions.json"
LAUNCH_TIME, SESSION_TIME = timedelta(minutes=10), timedelta(hours=12)
MAX_DESK_SESSIONS = 64
"""Sessions that are kept; the oldest ends when another one begins."""


@dataclass(frozen=True)
class DeskSession:
    """A person at a browser; times are ISO text, `secret` is a digest, `mark` that of a user's password."""

    secret: str
    person: str
    ends: str
    mark: str = ""


@dataclass(frozen=True)
class _Kept:
    """The whole file."""

    launches: tuple[DeskSession, ...] = ()
    sessions: tuple[DeskSession, ...] = ()

    @classmethod
    def read(cls, body: dict[str, Any]) -> _Kept:
        return cls(*(tuple(DeskSession(**one) for one in body.get(name, ())) for name in ("launches", "sessions")))


class Sessions:
    """The launch addresses and sessions of a workspace's desk."""

    def __init__(self, workspace: Path, clock: Callable[[], datetime]) -> None:
        self._file, self._clock = workspace / DESK_FOLDER / SESSIONS_FILE, clock

    def issue_launch(self, person: str, mark: str = "") -> str:
        """Return a secret that begins one session of a person, within ten minutes."""
        secret = secrets.token_urlsafe(32)
        with self._changing() as kept:
            launch = DeskSession(_digest(secret), person, self._until(LAUNCH_TIME), mark)
            self._write(_Kept((*kept.launches, launch), kept.sessions))
        return secret

    def enter(self, launch: str) -> str | None:
        """Begin a session and return its secret; None where the launch address is unknown, used or too old."""
        with self._changing() as kept:
            used = next((one for one in kept.launches if secrets.compare_digest(one.secret, _digest(launch))), None)
            if used is None:
                return None
            left = tuple(one for one in kept.launches if one is not used)
            return self._begin(_Kept(left, kept.sessions), used.person, used.mark)

    def begin(self, person: str, mark: str, instead_of: str = "") -> str:
        """Begin a session and return its secret, always a new one; a browser's earlier session ends."""
        with self._changing() as kept:
            others = tuple(one for one in kept.sessions if one.secret != _digest(instead_of))
            return self._begin(_Kept(kept.launches, others), person, mark)

    def _begin(self, kept: _Kept, person: str, mark: str) -> str:
        secret = secrets.token_urlsafe(32)
        begun = DeskSession(_digest(secret), person, self._until(SESSION_TIME), mark)
        self._write(_Kept(kept.launches, (*kept.sessions[-(MAX_DESK_SESSIONS - 1) :], begun)))
        return secret

    def find(self, secret: str) -> DeskSession | None:
        """Return the session of a secret; None where there is none, or it is over."""
        digest = _digest(secret)
        return next((one for one in self._read().sessions if secrets.compare_digest(one.secret, digest)), None)

    def end(self, secret: str) -> None:
        """End a session; an unknown one is no error."""
        with self._changing() as kept:
            self._write(_Kept(kept.launches, tuple(one for one in kept.sessions if one.secret != _digest(secret))))

    def _until(self, time: timedelta) -> str:
        return (self._clock() + time).isoformat()

    @contextmanager
    def _changing(self) -> Iterator[_Kept]:
        make_folder(self._file.parent)
        with wait_for_lock(self._file.with_suffix(".lock")):
            yield self._read()

    def _read(self) -> _Kept:
        """Return what is kept and not yet over."""
        if not self._file.exists():
            return _Kept()
        now = self._clock().isoformat()
        try:
            kept = _Kept.read(read_json(self._file))
        except (OSError, ValueError, TypeError, AttributeError):
            return _Kept()  # a damaged file ends all sessions, and admits nobody
        launches, sessions = (tuple(one for one in part if one.ends > now) for part in (kept.launches, kept.sessions))
        return _Kept(launches, sessions)

    def _write(self, kept: _Kept) -> None:
        write_json(self._file, asdict(kept), mode=0o600)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
