"""The registers that know more than their table: model calls, events, and the files of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .database.register import Register, RegisterEntry, match_words
from .digest import compute_digest
from .errors import changed_file
from .files.objects import Bodies
from .log.leaves import LoggedDatabase, LoggedTransaction
from .records import Artefact, Event, ModelCall

RECORDED_FILES = ("curves.json", "remark.json", "results.json", "sealed.json")
"""Files of a run whose digests are recorded; earlier versions did not record curves.json and remark.json."""


_COUNT_KIND = "SELECT count(*) FROM runs CROSS JOIN events WHERE events.run = runs.id AND events.kind = ?"
"""The order of the join makes both databases look the kind up run by run, instead of reading every event."""


def _count(rows: Sequence[tuple[Any, ...]]) -> int:
    ((number,),) = rows
    return int(number)


class CallRegister(Register[ModelCall]):
    """The answered model calls."""

    def __init__(self, database: LoggedDatabase, now: Callable[[], str]) -> None:
        super().__init__(database, "calls", ModelCall, now)

    def first(self, key: str) -> ModelCall | None:
        """Return the first call with this key, of whichever run; None if it was never answered."""
        calls = self.find("key = ?", key, order="seq")
        return calls[0] if calls else None

    def list_bodies(self) -> list[tuple[str, str, str, dict[str, Any]]]:
        """Return time, run, key and the other fields of every call, in the order of arrival."""
        rows = self._database.rows("SELECT at, run, key, body FROM calls ORDER BY seq")
        return [(at, run, key, json.loads(body)) for at, run, key, body in rows]

    def before(self, run: str, at: str, most: int) -> list[ModelCall]:
        """Return the last calls of a run that were answered up to an instant, the last one first."""
        return self.find("run = ? AND at <= ?", run, at, order=f"seq DESC LIMIT {int(most)}")


class EventRegister(Register[Event]):
    """Hypotheses, critiques, risk decisions, warnings: any JSON under a kind and a key."""

    def __init__(self, database: LoggedDatabase, now: Callable[[], str]) -> None:
        super().__init__(database, "events", Event, now)

    def record(self, run: str, kind: str, key: str, body: Any) -> bool:
        """Record an event; return whether it is new."""
        return self.add(Event(run, kind, key, body))

    def record_all(self, events: Sequence[Event]) -> None:
        """Record events in one transaction: all of them, or none. One that is there already changes nothing.

        Raises
        ------
        LedgerConflict
            Another event is kept under one of the keys.
        """

        def work(session: LoggedTransaction) -> None:
            for event in events:
                self.put(session, event, strict=True)

        self._database.write(work)

    def of(self, run: str, kind: str | None = None) -> list[Event]:
        """Return the events of a run, of one kind or of all, by kind and key."""
        return super().of(run) if kind is None else self.find("run = ? AND kind = ?", run, kind)

    def last(self, run: str, kind: str) -> Event | None:
        """Return the event of a kind with the last key, or None."""
        events = self.find("run = ? AND kind = ?", run, kind, order="key DESC LIMIT 1")
        return events[0] if events else None

    def search(self, run: str, kind: str, words: Sequence[str], most: int) -> list[Event]:
        """Return events of a kind in a run whose body holds all words, by key; ASCII letters of both sizes alike."""
        condition, patterns = match_words(words)
        order = f"key LIMIT {int(most)}"
        return self.find(f"run = ? AND kind = ? AND {condition}", run, kind, *patterns, order=order)

    def latest(self, kinds: Sequence[str], most: int) -> list[RegisterEntry[Event]]:
        """Return the last events of some kinds over all runs, the last one first."""
        # The order of the join makes both databases look the kinds up run by run, instead of reading every event.
        query = (
            "SELECT events.seq, events.at, events.run, events.kind, events.key, events.body "
            "FROM runs CROSS JOIN events "
            f"WHERE events.run = runs.id AND events.kind IN ({', '.join('?' * len(kinds))}) "
            f"ORDER BY events.seq DESC LIMIT {int(most)}"
        )
        rows = self._database.rows(query, tuple(kinds))
        return [RegisterEntry(seq, at, self._build_record(tuple(row))) for seq, at, *row in rows]

    def add_after(self, known: int, events: Sequence[Event]) -> bool:
        """Add events of one kind if the record holds `known` of them over all runs; return whether it did.

        A caller that compares with the newest events reads, and writes here. Where another process wrote meanwhile,
        nothing is added, and the caller reads again.
        """

        def work(session: LoggedTransaction) -> bool:
            if _count(session.execute(_COUNT_KIND, (events[0].kind,)).fetchall()) != known:
                return False
            for event in events:
                self.put(session, event)
            return True

        return self._database.write(work)

    def find_time(self, run: str, kind: str, key: str) -> str:
        """Return when an event was recorded, ISO; empty where it was not."""
        query = "SELECT at FROM events WHERE run = ? AND kind = ? AND key = ?"
        rows = self._database.rows(query, (run, kind, key))
        return str(rows[0][0]) if rows else ""


class ArtefactRegister(Register[Artefact]):
    """The digests of the files of runs, and the bytes that the files had when they were recorded."""

    def __init__(
        self, database: LoggedDatabase, objects: Bodies, files: Callable[[str], Path], now: Callable[[], str]
    ) -> None:
        super().__init__(database, "artefacts", Artefact, now)
        self._objects = objects
        self._files = files

    def record(self, run: str, name: str, digest: str) -> bool:
        """Record the digest of a named file of a run; return whether it is new."""
        return self.add(Artefact(run, name, digest))

    def digests(self, run: str) -> dict[str, str]:
        """Return the digests of a run's files, by name."""
        return {artefact.name: artefact.digest for artefact in self.of(run)}

    def read(self, run: str, name: str) -> bytes | None:
        """Return the bytes that a file of a run had when it was recorded; None where it was not."""
        digest = self.digests(run).get(name)
        return self._objects.get(digest) if digest else None

    def check(self, run: str) -> list[str]:
        """Compare a run's files with their recorded digests; return the names of those that have none.

        Raises
        ------
        ChangedFile
            If a file is gone, or is not the one that was recorded.
        """
        folder, digests = self._files(run), self.digests(run)
        for name, digest in sorted(digests.items()):
            path = folder / name
            if not path.is_file() or compute_digest(path.read_bytes()) != digest:
                raise changed_file(run, path, self._objects.where(digest))
        return [
            path.name
            for path in sorted(folder.glob("*.json"))
            if path.name in RECORDED_FILES and path.name not in digests
        ]
