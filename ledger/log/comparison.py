"""Compares the rows of the ledger with their leaves, and says what was done to each row that differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..database.schema import TABLE_KEYS
from ..digest import canonical_json
from .leaves import LoggedRow, shorten_row
from .reader import digest_row

MAX_VALUE_CHARACTERS = 60


@dataclass(frozen=True)
class LogFinding:
    """One thing in the record that is not as the log has it.

    Attributes
    ----------
    kind : str
        "edited", "back-dated", "moved", "dropped" or "added", of a row; "log", "older copy", "rewritten" or "policy",
        of the whole.
    what : str
        The table and the record; or the leaf or checkpoint.
    message : str
        What differs.
    leaf : int or None
        The index of the leaf, from 0.
    """

    kind: str
    what: str
    message: str
    leaf: int | None = None

    def record(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {"kind": self.kind, "what": self.what, "message": self.message, "leaf": self.leaf}


@dataclass
class LoggedTable:
    """What the log has of one table: rows by primary key, and digests of the rows from before the log began."""

    name: str
    rows: dict[Any, tuple[int, LoggedRow]] = field(default_factory=dict)
    earlier: Mapping[str, str] = field(default_factory=dict)
    erased: dict[str, str] = field(default_factory=dict)
    """Digests of rows and of bodies before an erasure on record, with those after it; each after its row's number."""

    @property
    def number(self) -> str:
        """The column of the primary key."""
        return TABLE_KEYS[self.name][0][0]

    def compare(self, present: Iterable[tuple[Any, dict[str, Any]]]) -> Iterator[LogFinding]:
        """Yield what was done to the rows of the table."""
        left, unknown = dict(self.rows), {}
        earlier = dict(self.earlier)
        for number, row in present:
            logged = left.get(number)
            shown = shorten_row(row)
            if logged is not None and self._is_as_logged(number, logged[1].columns, shown):
                del left[number]
            elif logged is not None or str(number) not in earlier:
                unknown[number] = shown
            elif self._follow(number, earlier.pop(str(number))) != digest_row(row):
                yield self._make_finding("edited", shown, "it differs from what it was when the log began")
        for number in earlier:
            yield LogFinding("dropped", f"{self.name} {number}", "it was there when the log began")
        yield from self._pair(left, unknown)

    def _is_as_logged(self, number: Any, logged: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
        """Return whether a row is that of its leaf, but for erasures of its body that are on record."""
        if not self.erased or not isinstance(body := logged.get("body"), Mapping):
            return logged == shown
        return shown == {**logged, "body": {"sha256": self._follow(number, str(body.get("sha256")))}}

    def _follow(self, number: Any, digest: str) -> str:
        """Return a digest after all erasures on record of its row."""
        left = len(self.erased)
        while left and (after := self.erased.get(f"{number} {digest}")):
            digest, left = after, left - 1
        return digest

    def _pair(self, left: dict[Any, tuple[int, LoggedRow]], unknown: dict[Any, dict[str, Any]]) -> Iterator[LogFinding]:
        """Pair logged rows that are gone with rows that no leaf has: by content, by key, by number."""
        for identity in (_hide(self.number), _choose(TABLE_KEYS[self.name][-1]), _choose((self.number,))):
            places = {identity(row): place for place, row in unknown.items()}
            for place, (index, logged) in list(left.items()):
                other = places.get(identity(logged.columns))
                if other in unknown:
                    del left[place]
                    yield self._describe_change(index, logged.columns, unknown.pop(other))
        for index, logged in left.values():
            yield self._make_finding("dropped", logged.columns, "the log has it, the table does not", index)
        for row in unknown.values():
            yield self._make_finding("added", row, "no leaf of the log has it")

    def _describe_change(self, index: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> LogFinding:
        changed = [name for name in before if before[name] != after.get(name)]
        kind = "edited"
        if changed == [self.number] and self.number in ("seq", "id"):
            kind = "moved"
        elif changed == ["at"] and str(after["at"]) < str(before["at"]):
            kind = "back-dated"
        message = "; ".join(_describe_column(name, before[name], after.get(name)) for name in changed)
        return self._make_finding(kind, before, message, index)

    def _make_finding(self, kind: str, row: Mapping[str, Any], message: str, leaf: int | None = None) -> LogFinding:
        others = [column for column in TABLE_KEYS[self.name][-1] if column != self.number]
        named = [_spell(row[column]) for column in others if row.get(column)]
        what = f"{self.name} {row.get(self.number)}" + (f" ({' / '.join(named)})" if named else "")
        return LogFinding(kind, what, message, leaf)


def _hide(column: str) -> Any:
    return lambda row: canonical_json({name: value for name, value in row.items() if name != column})


def _choose(columns: tuple[str, ...]) -> Any:
    return lambda row: canonical_json([row.get(name) for name in columns])


def _describe_column(name: str, before: Any, after: Any) -> str:
    if isinstance(before, Mapping) or isinstance(after, Mapping):
        return f"{name} was changed"
    return f"{name} was {_spell(before)} and is {_spell(after)}"


def _spell(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{value.get('sha256', '')[:12]}..."
    text = str(value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[: MAX_VALUE_CHARACTERS - 3]}..."
