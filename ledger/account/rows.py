"""The rows of a record, each with its leaf in the log; read-only, and only rows up to a day where one is given."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

from ..database.schema import TABLE_KEYS
from ..errors import AlphaloomError
from ..files.objects import Bodies
from ..log.checkpoint import Checkpoint
from ..log.leaves import STATE_TABLE, LoggedRow, shorten_row
from ..log.note import SignedNote, VerifierKey
from ..log.reader import RunQuery, read_rows


@dataclass(frozen=True)
class RecordRow:
    """One row of a table, with its body as an object and the number of its leaf.

    Attributes
    ----------
    table, number
        The table, and the primary key of the row.
    columns, body
        All columns, and the parsed body; empty for a table without one.
    leaf
        Index of the leaf in the log, from 0; of a row that is older than the log, the leaf over the state that it
        began with; None if there is none, which `record verify` names as an insertion.
    changed
        Whether the row differs from its leaf.
    """

    table: str
    number: Any
    columns: Mapping[str, Any]
    body: Any
    leaf: int | None
    changed: bool = False

    @property
    def at(self) -> str:
        """When it was recorded, ISO."""
        return str(self.columns.get("at", ""))

    @property
    def run(self) -> str:
        """Its run, "" where it has none."""
        return str(self.columns.get("run", "") or (self.columns["id"] if self.table == "runs" else ""))

    @property
    def key(self) -> str:
        """The key of an event or another row that has one."""
        return str(self.columns.get("key", ""))


@dataclass(frozen=True)
class RecordReader:
    """Reads tables once, within one transaction.

    Attributes
    ----------
    run_query, objects
        The database and the store of bodies.
    until
        The last day (UTC) of which rows are read; None for all.
    """

    run_query: RunQuery
    objects: Bodies
    until: date | None = None
    _tables: dict[str, list[RecordRow]] = field(default_factory=dict, init=False)
    _kinds: dict[str, list[RecordRow]] = field(default_factory=dict, init=False)

    def rows(self, table: str) -> list[RecordRow]:
        """Return the rows of a table in the order in which they were recorded."""
        if table not in self._tables:
            self._tables[table] = list(self._read(table))
        return self._tables[table]

    def events(self, *kinds: str) -> list[RecordRow]:
        """Return the events of some kinds, the oldest first."""
        for row in self.rows("events") if not self._kinds else ():
            self._kinds.setdefault(row.columns["kind"], []).append(row)
        return sorted((row for kind in kinds for row in self._kinds.get(kind, ())), key=lambda row: row.number)

    @cached_property
    def runs(self) -> Mapping[str, RecordRow]:
        """The runs by id."""
        return {row.run: row for row in self.rows("runs")}

    def settings(self, run: str) -> Mapping[str, Any]:
        """Return the settings of a campaign's run; empty for another run."""
        row = self.runs.get(run)
        found = (row.body.get("config") or {}).get("settings") if row else None
        return found if isinstance(found, Mapping) else {}

    def labels(self, run: str) -> frozenset[str]:
        """Return the labels of what a run was told: "confidential", and "jurisdiction:XX"."""
        settings, row = self.settings(run), self.runs.get(run)
        agents = settings.get("agents") or {}
        documents = ((row.body.get("config") or {}).get("own") or {}).get("documents") or () if row else ()
        marked = [label for labels in ((settings.get("market") or {}).get("labels") or {}).values() for label in labels]
        sensitive = [agents, *documents]
        found = {str(label) for label in marked}
        found |= {"confidential"} if any(one.get("sensitivity") == "confidential" for one in sensitive) else set()
        found |= {f"jurisdiction:{agents['jurisdiction']}"} if agents.get("jurisdiction") else set()
        return frozenset(found)

    def read_object(self, digest: str) -> Any:
        """Return the JSON under a digest; None where it is gone, damaged or no JSON."""
        try:
            return json.loads(self.objects.get(digest))
        except (AlphaloomError, OSError, ValueError):
            return None

    def find_signer(self, leaf: int | None) -> tuple[str, int | None]:
        """Return the name of the key that signed the first checkpoint over a leaf, and the leaf of that key.

        The name is "" where no checkpoint covers the leaf yet, or none of the keys that the log names signed it.
        """
        if leaf is None:
            return "", None
        keys = {str(row.columns["vkey"]): row for row in self.rows("log_keys")}
        notes = self.run_query(f"SELECT note FROM log_checkpoints WHERE size > {int(leaf)} ORDER BY id LIMIT 1")
        for (text,) in notes:
            note = SignedNote.parse(text)
            if Checkpoint.parse(note.text).size > leaf:
                for signer in note.signers([VerifierKey.parse(vkey) for vkey in keys]):
                    return signer.name, keys[str(signer)].leaf
        return "", None

    @cached_property
    def size(self) -> int:
        """The number of leaves of the log."""
        return int(self.run_query("SELECT COUNT(*) FROM leaves")[0][0])

    @cached_property
    def _leaves(self) -> tuple[dict[tuple[str, Any], tuple[int, LoggedRow]], int | None]:
        found: dict[tuple[str, Any], tuple[int, LoggedRow]] = {}
        begin: int | None = None
        for number, entry in self.run_query("SELECT id, entry FROM leaves ORDER BY id"):
            try:
                row = LoggedRow.parse(entry)
            except ValueError:
                continue  # `record verify` names it
            if row.table == STATE_TABLE:
                begin = number - 1
            elif row.table in TABLE_KEYS:
                found[row.table, row.columns.get(TABLE_KEYS[row.table][0][0])] = (number - 1, row)
        return found, begin

    def _read(self, table: str) -> Iterator[RecordRow]:
        leaves, begin = self._leaves
        for number, columns in read_rows(self.run_query, table):
            if self.until is not None and str(columns.get("at", ""))[:10] > self.until.isoformat():
                continue
            leaf, logged = leaves.get((table, number), (begin, None))
            changed = logged is not None and dict(logged.columns) != shorten_row(columns)
            yield RecordRow(table, number, columns, _parse_body(columns.get("body")), leaf, changed)


def _parse_body(text: Any) -> Any:
    """Return a body as an object; of an event and the like, what it stands under."""
    try:
        body = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return body["body"] if isinstance(body, dict) and set(body) == {"body"} else body
