"""Erasure of personal data and of old texts: bodies are replaced or removed, the leaves with their digests stay.

A leaf holds a body as its digest, so a body can be replaced without touching the log. Each erasure is a row of its own,
with its leaf: who erased what, when and why, and the digests before and after. The desk's key signs it, because whoever
can write to the database can add a row. Verification accepts exactly the changes of signed erasures. What stands in the
leaf itself (keys, short columns) and what verdicts rest on is not erased.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

from ...database.schema import LOGGED_TABLES, TABLE_KEYS, list_columns
from ...digest import JSON, canonical_json, compute_digest
from ...errors import LedgerError
from ...files.objects import Bodies
from ..keys import LOG_KEY, LOG_LIST, KeyFolder
from ..leaves import STATE_TABLE, LoggedDatabase, LoggedRow, LoggedTransaction
from ..note import KIND_LOG, NoteError, SigningKey, VerifierKey, decode_base64
from ..reader import RunQuery, digest_row, read_rows
from .retirement import read_retired, refuse_retired

PERSONAL_KINDS = (
    "review",
    "agents.review",
    "agents.reviews",
    "blind-judgement",
    "seal-request",
    "seal-decision",
    "alarm-acknowledged",
    "revalidation",
    "start",
    "stop",
    "close",
)
"""Kinds of events in which people's names and words are erased."""
PERSONAL_TABLES = ("events", "standings")
_ENDED = "done"
"""Status of a run that reads its model calls no more."""
_CALL_BODIES = re.compile(r'"(?:reply|request)":"([0-9a-f]{64})"')
_FIND_ERASURES = "SELECT id, at, body FROM erasures ORDER BY id"
_SIGNER: Final = "erasure"
"""Name under which a key signs an erasure."""


class ErasureRefused(LedgerError):
    """What should be erased is not there, or verdicts rest on it."""

    code = "erasure_refused"


@dataclass(frozen=True)
class RowErasure:
    """A row whose body was replaced: digests of the body, and of all columns, before and after."""

    table: str
    number: int
    before: str
    after: str
    row_before: str
    row_after: str


@dataclass(frozen=True)
class Erasure:
    """One erasure: who did it, when and why, the rows whose bodies it replaced, and the objects that it removed.

    `signature` is that of the desk's key over all of it, base64.
    """

    number: int
    at: str
    by: str
    why: str
    rows: tuple[RowErasure, ...] = ()
    objects: tuple[str, ...] = ()
    signature: str = ""

    @classmethod
    def parse(cls, number: int, at: str, body: str) -> Self:
        """Read a row of the table."""
        record = json.loads(body)
        rows = tuple(RowErasure(**row) for row in record["rows"])
        signature = str(record.get("signature", ""))
        return cls(number, at, record["by"], record["why"], rows, tuple(record["objects"]), signature)

    @property
    def signed_text(self) -> str:
        """What is signed: all but the signature."""
        return canonical_json(asdict(replace(self, signature="")))

    def is_signed_by(self, public: bytes) -> bool:
        """Return whether an Ed25519 key signed it."""
        with suppress(NoteError):
            signature = decode_base64(self.signature) or b""
            VerifierKey(_SIGNER, KIND_LOG, public).seen_at(self.signed_text, signature)
            return True
        return False

    def record(self) -> dict[str, Any]:
        """Return the erasure as JSON."""
        return asdict(self)

    def describe(self) -> str:
        """Return who erased how much, when and why, in one line."""
        parts = [f"{len(self.rows)} rows"] if self.rows else []
        parts += [f"{len(self.objects)} stored texts"] if self.objects else []
        return f"erased, by {self.by} on {self.at[:10]}: {self.why} ({' and '.join(parts)}; erasure {self.number})"


@dataclass(frozen=True)
class Mention:
    """A row that names a person and is not erased."""

    table: str
    number: object
    reason: str


class ErasureRecord:
    """Erases bodies of the record and of the stored objects of one workspace."""

    def __init__(self, database: LoggedDatabase, objects: Bodies, now: Callable[[], str], keys: KeyFolder) -> None:
        self._database, self._objects, self._now, self._keys = database, objects, now, keys

    def all(self) -> list[Erasure]:
        """Return every erasure, the oldest first."""
        return [Erasure.parse(*row) for row in self._database.rows(_FIND_ERASURES)]

    def is_erased(self, digest: str) -> bool:
        """Return whether a stored text was erased, and was not stored again since."""
        found = self._database.rows("SELECT 1 FROM erasures WHERE body LIKE ? LIMIT 1", (f'%"{digest}"%',))
        return bool(found) and digest not in self._objects.names()

    def find_person(self, name: str) -> tuple[list[tuple[str, int]], list[Mention]]:
        """Return the rows in which the name of a person would be erased, and those in which it would stay, and why."""
        pattern = _compile_name(name)
        found = [(table, row[key]) for table, key, row, _ in _find_named(self._database.rows, pattern, "")]
        return found, list(_find_mentions(self._database.rows, pattern, set(found)))

    def erase_person(self, name: str, by: str, why: str) -> Erasure | None:
        """Replace the name of a person in decisions and comments by a mark with the erasure's number.

        None if it stands in none of them.

        Raises
        ------
        ErasureRefused
            If the name is too short to be told from other words; `NoteError` if there is no key that signs it.
        """
        pattern = _compile_name(name)

        def replace_names(session: LoggedTransaction, number: int) -> list[RowErasure]:
            def run_query(query: str) -> Sequence[tuple[Any, ...]]:
                return session.execute(query).fetchall()

            changes = []
            for table, key, row, body in list(_find_named(run_query, pattern, f"[erased {number}]")):
                changed = row | {"body": body}
                session.execute(f"UPDATE {table} SET body = ? WHERE {key} = ?", (body, row[key]))
                before, after = (compute_digest(one["body"]) for one in (row, changed))
                changes.append(RowErasure(table, row[key], before, after, digest_row(row), digest_row(changed)))
            return changes

        return self._erase(PERSONAL_TABLES, replace_names, (), by, why)

    def find_text(self, digest: str) -> str:
        """Return the digest of a stored text from its start.

        Raises
        ------
        ErasureRefused
            If no stored text, or more than one, begins so, or a row other than a model call refers to it.
        """
        found = sorted(name for name in self._objects.names() if digest and name.startswith(digest))
        if len(found) != 1:
            raise ErasureRefused(
                "several stored texts begin so" if found else "no stored text has this digest",
                field="--text",
                got=digest,
                allowed=found[:5] or "the SHA-256 of a prompt, a reply or another object of the workspace",
            )
        for table in LOGGED_TABLES:
            if table not in ("calls", "erasures", *_list_without_body()):
                query = f"SELECT {TABLE_KEYS[table][0][0]} FROM {table} WHERE body LIKE ? LIMIT 1"
                for (number,) in self._database.rows(query, (f"%{found[0]}%",)):
                    raise ErasureRefused(
                        "this text is evidence and is not erased",
                        field="--text",
                        got=found[0],
                        hint=f"Row {number} of {table} rests on it.",
                    )
        if self._database.rows("SELECT 1 FROM leaves WHERE id = 1 AND entry LIKE ?", (f"%{found[0]}%{STATE_TABLE}%",)):
            raise ErasureRefused("this is the list of the rows from before the log", field="--text", got=found[0])
        return found[0]

    def find_bodies(self, before: str) -> tuple[list[str], list[str]]:
        """Return the stored prompts and replies of model calls before a day, and the runs that still need theirs.

        A body that a later call uses too, or one of a run that is not done, is not among them.
        """
        runs = dict(self._database.rows("SELECT run, status FROM statuses ORDER BY seq"))
        old: set[str] = set()
        needed: set[str] = set()
        kept: set[str] = set()
        for run, at, body in self._database.rows("SELECT run, at, body FROM calls"):
            digests = _CALL_BODIES.findall(body)
            if at >= before:
                needed.update(digests)
            elif runs.get(run) != _ENDED:
                needed.update(digests)
                kept.add(run)
            else:
                old.update(digests)
        return sorted((old - needed) & self._objects.names()), sorted(kept)

    def erase_objects(self, digests: Sequence[str], by: str, why: str) -> Erasure | None:
        """Remove stored texts, after the erasure was recorded; None if there is none.

        Raises
        ------
        NoteError
            If there is no key that signs the erasure.
        """
        if not digests:
            return None
        done = self._erase((), lambda session, number: [], tuple(digests), by, why)
        self._objects.remove(digests)
        return done

    def _erase(
        self,
        tables: Sequence[str],
        change: Callable[[LoggedTransaction, int], list[RowErasure]],
        objects: tuple[str, ...],
        by: str,
        why: str,
    ) -> Erasure | None:
        """Change rows and record it, in one transaction; when that is run again, it finds its own record."""
        at, seed = self._now(), self._keys.make_seed(LOG_KEY)
        refuse_retired(self._keys, seed)

        def work(session: LoggedTransaction) -> Erasure | None:
            for row in session.execute("SELECT id, at, body FROM erasures WHERE at = ? ORDER BY id", (at,)).fetchall():
                if (done := Erasure.parse(*row)).by == by and done.why == why and done.objects == objects:
                    return done
            ((last,),) = session.execute("SELECT coalesce(max(id), 0) FROM erasures").fetchall()
            rows = change(session, last + 1)
            if not rows and not objects:
                return None
            plain = Erasure(last + 1, at, by, why, tuple(rows), objects)
            signature = SigningKey(_SIGNER, KIND_LOG, seed).sign(plain.signed_text).body
            done = replace(plain, signature=b64encode(signature).decode())
            body: JSON = {name: part for name, part in done.record().items() if name not in ("number", "at")}
            session.append("erasures", {"at": at, "body": canonical_json(body)})
            return done

        return self._database.rewrite(tables, work) if tables else self._database.write(work)


def read_erasures(run_query: RunQuery) -> list[Erasure]:
    """Return the erasures of a record; what cannot be read is left out: its row is a finding already."""
    erasures = []
    for row in run_query(_FIND_ERASURES):
        try:
            erasures.append(Erasure.parse(*row))
        except (ValueError, KeyError, TypeError):
            continue
    return erasures


def sort_erasures(run_query: RunQuery, keys: KeyFolder) -> tuple[list[Erasure], list[Erasure], str]:
    """Return the erasures that count, those that do not, and what cannot be told of them.

    An erasure counts if this desk's key signed it, or one of its list of logs, or one that it retired later. A desk
    whose keys are not in the log cannot tell, and counts all.
    """
    erasures = read_erasures(run_query)
    if not erasures:
        return [], [], ""
    named = set()
    for (vkey,) in run_query("SELECT vkey FROM log_keys"):
        with suppress(NoteError):  # a key that was edited is a finding of its own
            named.add(VerifierKey.parse(vkey).public)
    seed = keys.find_seed(LOG_KEY)
    trusted = {key.public for key in keys.trusted(LOG_LIST)}
    trusted |= {SigningKey(_SIGNER, KIND_LOG, seed).verifier.public} if seed else set()
    retired = {key.public for key in read_retired(keys) if key.kind == KIND_LOG}
    if not named & (trusted | retired):
        return erasures, [], "no key of this desk is in the log, so it cannot tell who made the erasures"
    leaves, ends = _find_leaves(run_query)

    def counts(erasure: Erasure) -> bool:
        leaf = leaves.get(erasure.number, 0)
        before = {public for public in retired if leaf < ends.get(public, math.inf)}
        return any(map(erasure.is_signed_by, trusted | before))

    counted = [erasure for erasure in erasures if counts(erasure)]
    return counted, [erasure for erasure in erasures if erasure not in counted], ""


def _find_leaves(run_query: RunQuery) -> tuple[dict[int, int], dict[bytes, int]]:
    """Return the leaf of each erasure by its number, and that of each retirement by the public key."""
    erasures: dict[int, int] = {}
    ends: dict[bytes, int] = {}
    for number, entry in run_query("SELECT id, entry FROM leaves ORDER BY id"):
        if '"table":"erasures"' not in entry and '"table":"retirements"' not in entry:
            continue
        with suppress(ValueError, NoteError, KeyError):
            row = LoggedRow.parse(entry)
            if row.table == "erasures":
                erasures.setdefault(row.columns["id"], number)
            else:
                ends.setdefault(VerifierKey.parse(str(row.columns["vkey"])).public, number)
    return erasures, ends


def find_lost_bodies(run_query: RunQuery, objects: Bodies, erasures: Sequence[Erasure]) -> Iterator[tuple[int, str]]:
    """Yield the number of a model call and the digest of its prompt or reply, if that is gone without an erasure."""
    present = objects.names() | {digest for erasure in erasures for digest in erasure.objects}
    for number, body in run_query("SELECT seq, body FROM calls ORDER BY seq"):
        for digest in _CALL_BODIES.findall(body):
            if digest not in present:
                yield number, digest


def _compile_name(name: str) -> re.Pattern[str]:
    """Return a pattern that finds a name as a whole word, in capital or small letters."""
    if len(name.strip()) < 2:
        raise ErasureRefused("this name is too short", field="--person", got=name, allowed="2 letters or more")
    return re.compile(rf"(?<!\w){re.escape(name.strip())}(?!\w)", re.IGNORECASE)


def _find_named(
    run_query: RunQuery, pattern: re.Pattern[str], mark: str
) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    """Yield table, key column, row and new body of each row in whose texts people write and a name is found."""
    for table in PERSONAL_TABLES:
        key = TABLE_KEYS[table][0][0]
        for _, row in read_rows(run_query, table):
            if row.get("kind", PERSONAL_KINDS[0]) not in PERSONAL_KINDS or not pattern.search(row["body"]):
                continue
            body = canonical_json(_replace(json.loads(row["body"]), pattern, mark))
            if body != row["body"]:
                yield table, key, row, body


def _replace(value: Any, pattern: re.Pattern[str], mark: str) -> Any:
    """Replace a name in all texts of a JSON value, and in no key."""
    if isinstance(value, str):
        return pattern.sub(mark, value)
    if isinstance(value, dict):
        return {name: _replace(part, pattern, mark) for name, part in value.items()}
    return [_replace(part, pattern, mark) for part in value] if isinstance(value, list) else value


def _find_mentions(run_query: RunQuery, pattern: re.Pattern[str], erased: set[tuple[str, int]]) -> Iterator[Mention]:
    """Yield the rows in which a name stays: as a part of a column, or of a body that verdicts or accounts rest on."""
    for table in LOGGED_TABLES:
        for number, row in read_rows(run_query, table):
            texts = [name for name, value in row.items() if isinstance(value, str) and pattern.search(value)]
            if columns := [name for name in texts if name != "body"]:
                yield Mention(table, number, f"the leaf itself holds {', '.join(columns)}")
            elif texts and (table, number) not in erased:
                kept = "it is the record of an erasure" if table == "erasures" else "verdicts or accounts rest on it"
                yield Mention(table, number, kept)


def _list_without_body() -> list[str]:
    return [table for table in LOGGED_TABLES if "body" not in list_columns(table)]
