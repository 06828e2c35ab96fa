"""Finds what an id names, and writes its account."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import partial
from pathlib import Path

from ..database.schema import LOGGED_TABLES, TABLE_KEYS
from ..errors import UnknownRecord
from ..log.export import SignedLog
from ..log.leaves import LoggedRow
from ..log.reader import read_record
from .decision import STEP_EVENT, RecordedDecision, list_decisions, tell_decision, tell_order, tell_step
from .factor import tell_exposures, tell_factor, tell_review, tell_reviews, tell_status
from .rows import RecordReader, RecordRow
from .sentences import DecisionAccount, Quoted, Telling

MIN_NAMED_CHARS = 4
BOOK_PREFIX = "book-"
ALLOWED = (
    "the id of a factor or decision, or its start; DECISION/SYMBOL; BOOK/DAY and BOOK/DAY/SYMBOL; the number of an "
    "opening; FACTOR/NUMBER of a review; TABLE/NUMBER"
)
FACTOR_ROWS = ("verdicts", "library", "attempts", "trials", "alarm-acknowledged", "revalidation", "case")
TABLES_TOLD = ("events", "outcomes")
Tell = Callable[[Telling], None]


def explain_record(workspace: Path, name: str, until: date | None = None) -> DecisionAccount:
    """Return the account of a decision, made from the record of a workspace alone; nothing is written.

    `until` is the last day of which rows are read.

    Raises
    ------
    UnknownRecord
        If nothing, or more than one thing, has this name.
    WorkspaceError
        If there is no record, or it cannot be read.
    """
    return read_record(
        workspace, lambda run_query, objects: explain_name(RecordReader(run_query, objects, until), name)
    )


def explain_name(reader: RecordReader, name: str) -> DecisionAccount:
    """Return the account of what a name stands for in a record; see `explain_record`."""
    for find in (_find_row, _find_opening, _find_step, _find_decision, _find_review, _find_factor):
        found = dict(find(reader, name.strip()))
        if len(found) > 1:
            allowed = [subject for _, subject in found][:20]
            raise UnknownRecord(f"{name} names more than one record", field="ID", got=name, allowed=allowed)
        for (kind, subject), tell in found.items():
            telling = Telling(reader)
            tell(telling)
            return telling.finish(kind, subject)
    raise UnknownRecord(f"no record is named {name}", field="ID", got=name, allowed=ALLOWED)


def name_leaf(log: SignedLog, name: str) -> str:
    """Return the TABLE/NUMBER of a leaf that is named LEAF/N; another name as it is."""
    word, _, number = name.partition("/")
    if word.casefold() != "leaf" or not number.isascii() or not number.isdecimal() or int(number) >= len(log.entries):
        return name
    row = LoggedRow.parse(log.entries[int(number)].decode())
    return f"{row.table}/{row.columns[TABLE_KEYS[row.table][0][0]]}" if row.table in TABLE_KEYS else name


def _find_row(reader: RecordReader, name: str) -> Iterator[tuple[tuple[str, str], Tell]]:
    """Yield the account of TABLE/NUMBER."""
    table, _, number = name.partition("/")
    if table not in LOGGED_TABLES or not number:
        return
    row = next((row for row in reader.rows(table) if str(row.number) == number), None)
    if row is None:
        raise UnknownRecord(f"the record has no row {name}", field="ID", got=name, allowed="a row of the table")
    yield _account_row(reader, row, name)


def _account_row(reader: RecordReader, row: RecordRow, name: str) -> tuple[tuple[str, str], Tell]:
    """Return kind, subject and account of a row."""
    kind = str(row.columns.get("kind", "")) if row.table == "events" else row.table
    if kind == "outcomes":
        return _account_row(reader, next(one for one in reader.rows("trials") if one.number == row.number), name)
    body = row.body if isinstance(row.body, dict) else {}
    factor = str(row.columns.get("factor_id") or row.columns.get("subject") or body.get("factor_id") or "")
    factor = factor or row.key.partition("/")[0]
    tells: dict[str, tuple[tuple[str, str], Tell]] = {
        "openings": (("opening", name), partial(_tell_openings, rows=[row])),
        "standings": (("status change", name), partial(tell_status, row=row)),
        "review": (("review", row.key), partial(tell_review, row=row)),
        "book.mode": (("order", name), partial(tell_order, row=row)),
        "book.step": (("step", f"{row.run}/{row.key}"), partial(tell_step, row=row)),
        "risk": (("decision", row.key), partial(tell_decision, decision=RecordedDecision(row, body, {}))),
        "exposure-audit": (("exposure audit", factor), partial(tell_exposures, factor=factor)),
        **dict.fromkeys(FACTOR_ROWS, (("factor", factor), partial(tell_factor, factor=factor))),
        **dict.fromkeys(("seal-request", "seal-decision"), (("seal", name), partial(_tell_seal, run=row.run))),
    }
    if kind not in tells or (kind == "attempts" and not body.get("factor_id")):
        allowed = f"{', '.join((*TABLES_TOLD, *tells))}; {ALLOWED}"
        raise UnknownRecord(f"{name} is no decision", field="ID", got=f"a row of {kind}", allowed=allowed)
    return tells[kind]


def _find_opening(reader: RecordReader, name: str) -> Iterator[tuple[tuple[str, str], Tell]]:
    """Yield the account of the openings with a number: each data set counts its own."""
    number = re.sub(r"^(opening|seal)[ /#]*", "", name)
    rows = [row for row in reader.rows("openings") if str(row.columns["number"]) == number]
    if rows:
        yield ("opening", number), partial(_tell_openings, rows=rows)


def _find_step(reader: RecordReader, name: str) -> Iterator[tuple[tuple[str, str], Tell]]:
    """Yield the account of BOOK/DAY or BOOK/DAY/SYMBOL."""
    book, _, rest = name.partition("/")
    day, _, asset = rest.partition("/")
    for row in reader.events(STEP_EVENT) if day else ():
        if row.run in (book, f"{BOOK_PREFIX}{book}") and row.key == day:
            _refuse_unknown_asset(row.body.get("decision") or {}, asset, name)
            yield (
                ("step", f"{row.run}/{day}" + (f"/{asset}" if asset else "")),
                partial(tell_step, row=row, asset=asset),
            )


def _find_decision(reader: RecordReader, name: str) -> Iterator[tuple[tuple[str, str], Tell]]:
    """Yield the account of a decision of the gate, or of one signal of it."""
    start, _, asset = name.partition("/")
    if len(start) < MIN_NAMED_CHARS:
        return
    for decision in list_decisions(reader):
        if decision.id.startswith(start):
            _refuse_unknown_asset(decision.body, asset, name)
            subject = f"{decision.id}/{asset}" if asset else decision.id
            yield ("decision", subject), partial(tell_decision, decision=decision, asset=asset)


def _refuse_unknown_asset(body: object, asset: str, name: str) -> None:
    rulings = body.get("rulings") or () if isinstance(body, dict) else ()
    known = [str(one.get("asset", "")) for one in rulings]
    if asset and asset not in known:
        raise UnknownRecord("this decision judged no such signal", field="ID", got=name, allowed=known[:50])


def _find_review(reader: RecordReader, name: str) -> Iterator[tuple[tuple[str, str], Tell]]:
    """Yield the account of FACTOR/NUMBER, a decision of a person on a case."""
    if "/" in name:
        for row in reader.events("review"):
            if row.key == name:
                yield ("review", name), partial(tell_review, row=row)


def _find_factor(reader: RecordReader, name: str) -> Iterator[tuple[tuple[str, str], Tell]]:
    """Yield the account of a factor, by its id or the start of it."""
    if len(name) < MIN_NAMED_CHARS:
        return
    for factor in dict.fromkeys(_list_factors(reader)):
        if factor == name or factor.startswith(name):
            yield ("factor", factor), partial(tell_factor, factor=factor)


def _list_factors(reader: RecordReader) -> Iterator[str]:
    tables: Iterable[RecordRow] = (*reader.rows("verdicts"), *reader.rows("library"))
    yield from (str(row.columns["factor_id"]) for row in tables)
    yield from (str(row.body["factor_id"]) for row in reader.rows("attempts") if row.body.get("factor_id"))
    yield from (row.key for row in reader.events("case"))


# The sealed window.


def _tell_openings(telling: Telling, rows: list[RecordRow]) -> None:
    for row in rows:
        columns = row.columns
        telling.say(
            "Opening {number} of the sealed days {first} to {last} of the data {dataset} was made by run {run} on "
            "{day}.", [row], (str(columns["number"]),), number=columns["number"], first=columns["first_day"],
            last=columns["last_day"], dataset=columns["dataset"], run=row.run, day=row.at[:10],
        )  # fmt: skip  # a call as a sentence
        telling.say("The reason on record is {reason}.", [row], reason=Quoted(str(columns["reason"])))
        if columns["number"] > 1:
            telling.say("Shared days had been opened {earlier} times before.", [row], earlier=columns["number"] - 1)
        _tell_seal(telling, row.run)


def _tell_seal(telling: Telling, run: str) -> None:
    """Say who asked for the sealed days of a run, and who agreed or refused."""
    reader = telling.reader
    home = [reader.runs[run]] if run in reader.runs else []
    requests = [row for row in reader.events("seal-request") if row.run == run]
    decisions = [row for row in reader.events("seal-decision") if row.run == run]
    for row in requests:
        body = row.body
        telling.say(
            "The campaign {run} asked on {day} to open {days} sealed days of {symbols} symbols, {first} to {last}.",
            [row], run=run, day=row.at[:10], days=body.get("days"), symbols=body.get("symbols"),
            first=str(body.get("first_day", "")), last=str(body.get("last_day", "")),
        )  # fmt: skip  # a call as a sentence
        accepted = [str(one.get("id", "")) for one in body.get("accepted") or ()]
        telling.say("It named the accepted factors {factors}.", [row], factors=accepted)
    for row in decisions:
        body, by = row.body, str(row.body.get("by", ""))
        word = "agreed" if body.get("agrees") else "refused"
        telling.approver += [by] if body.get("agrees") else []
        telling.say(
            "{by} {decision} on {day} to open them: {reason}.", [row], (by, word),
            by=by, decision=word, day=str(body.get("at", row.at))[:10], reason=Quoted(str(body.get("reason", ""))),
        )  # fmt: skip  # a call as a sentence
    if requests and not decisions:
        telling.say("Nobody has decided on the request.", requests)
    if not requests and (reader.settings(run).get("evidence") or {}).get("open_sealed"):
        telling.say("The campaign file of run {run} asked for the opening, and no person was asked.", home, run=run)
    elif not requests:
        telling.say("The record has no request of run {run} that a person decided.", home, run=run)
    for name in dict.fromkeys(
        row.columns["factor_id"]
        for row in reader.rows("verdicts")
        if row.run == run and row.body.get("verdict") == "accepted"
    ):
        tell_reviews(telling, str(name), run)
