"""Every edit of the record that a database shell can make is named by the verification, down to the record."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from alphaloom.ledger import Event, Ledger
from alphaloom.ledger.database.schema import EXEMPT_TABLES, LOGGED_TABLES, TABLE_KEYS, list_columns
from alphaloom.ledger.log import (
    CheckpointPolicy,
    KeyFolder,
    LogFinding,
    OutsideCheckpoint,
    SignedNote,
    verify_workspace,
)

from .conftest import DAY, begin, go_on, shell

LEASES = {"holds", "releases"}
"""The tables that no leaf covers. `EXEMPT_TABLES` has two more: the log itself, whose edits are found."""
COLUMNS = [(table, column) for table in TABLE_KEYS if table not in LEASES for column in list_columns(table)]
NUMBERS = {table: key[0][0] for table, key in TABLE_KEYS.items() if key[0][0] in ("seq", "id")}


def find(workspace: Path, keys: KeyFolder) -> list[LogFinding]:
    return list(verify_workspace(workspace, keys).findings)


def test_what_is_exempt_is_listed_with_its_reason() -> None:
    assert set(EXEMPT_TABLES) == {*LEASES, "leaves", "log_checkpoints"}
    assert all(len(reason) > 10 for reason in EXEMPT_TABLES.values())


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_an_edit_of_any_column_is_named(workspace: Path, keys: KeyFolder, table: str, column: str) -> None:
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as connection:
        ((kind, row),) = connection.execute(
            f"SELECT typeof({column}), rowid FROM {table} ORDER BY rowid DESC LIMIT 1"
        ).fetchall()
    change = f"{column} + 70" if kind == "integer" else f"{column} || 'x'"
    shell(workspace, f"UPDATE {table} SET {column} = {change} WHERE rowid = {row}")
    findings = find(workspace, keys)
    assert findings
    if table in LOGGED_TABLES:
        (one,) = [finding for finding in findings if finding.what.startswith(f"{table} ")]
        assert one.kind == ("moved" if column == NUMBERS.get(table) else "edited")
        assert column in one.message


@pytest.mark.parametrize("table", LOGGED_TABLES)
def test_a_deleted_row_is_named(workspace: Path, keys: KeyFolder, table: str) -> None:
    shell(workspace, f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})")
    (one,) = [finding for finding in find(workspace, keys) if finding.kind == "dropped"]
    assert one.what.startswith(f"{table} ")
    assert one.leaf is not None


@pytest.mark.parametrize("table", LOGGED_TABLES)
def test_a_copied_row_is_named_as_added(workspace: Path, keys: KeyFolder, table: str) -> None:
    """A row that a shell adds has no leaf, also if all guards are gone."""
    columns = list_columns(table)
    unique = {column for key in TABLE_KEYS[table] for column in key[:1]}
    chosen = [
        "700" if column in ("seq", "id", "trial") else f"{column} || 'x'" if column in unique else column
        for column in columns
    ]
    shell(workspace, f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(chosen)} FROM {table} LIMIT 1")
    one, *more = find(workspace, keys)
    assert one.kind == "added"
    assert one.what.startswith(f"{table} ")
    assert [other.what for other in more] == (["erasure 700"] if table == "erasures" else [])  # nobody signed it


@pytest.mark.parametrize(
    ("statement", "kind", "what"),
    [
        ("DELETE FROM trials WHERE id = (SELECT max(id) FROM trials)", "dropped", "trials 1"),
        ("DELETE FROM openings", "dropped", "openings 1"),
        ("UPDATE verdicts SET body = replace(body, 'rejected', 'accepted')", "edited", "verdicts 1"),
        ("UPDATE events SET body = '{\"verdict\":\"refused\"}' WHERE key = 'k'", "edited", "events 1"),
        ("UPDATE attempts SET body = '{}'", "edited", "attempts 1"),
        ("DELETE FROM calls WHERE seq % 2 = 1", "dropped", "calls 1"),
        ("UPDATE calls SET body = '{\"tokens_in\":1}'", "edited", "calls 1"),
        ("UPDATE trials SET at = '2019-01-02T00:00:00+00:00'", "back-dated", "trials 1"),
        ("UPDATE trials SET number = 1, prior = 0", "edited", "trials 1"),
        ("DELETE FROM leaves WHERE id = 3", "log", "leaf 2"),
        ("DELETE FROM leaves WHERE id = (SELECT max(id) FROM leaves)", "log", "checkpoint of"),
        ("DELETE FROM log_checkpoints WHERE id = 1", "log", "checkpoint of"),
        ("UPDATE log_checkpoints SET nodes = nodes || 'AA' WHERE id = 1", "log", "checkpoint of"),
        ("UPDATE leaves SET entry = 'x' WHERE id = 4", "log", "leaf 3"),
    ],
)
def test_the_edits_of_a_shell_are_named(workspace: Path, keys: KeyFolder, statement: str, kind: str, what: str) -> None:
    if "prior" in statement:
        statement = statement.replace("number = 1", "number = number + 1")
    shell(workspace, statement)
    assert [one for one in find(workspace, keys) if one.kind == kind and one.what.startswith(what)]


def test_rows_in_another_order_are_named(workspace: Path, keys: KeyFolder) -> None:
    shell(
        workspace,
        "UPDATE events SET seq = 900 WHERE seq = 2",
        "UPDATE events SET seq = 2 WHERE seq = 3",
        "UPDATE events SET seq = 3 WHERE seq = 900",
    )
    assert [(one.kind, one.message) for one in find(workspace, keys)] == [
        ("moved", "seq was 2 and is 3"),
        ("moved", "seq was 3 and is 2"),
    ]


def test_rows_that_are_numbered_anew_after_a_deletion_name_the_one_that_is_gone(
    workspace: Path, keys: KeyFolder
) -> None:
    shell(workspace, "DELETE FROM events WHERE seq = 2", "UPDATE events SET seq = seq - 1 WHERE seq > 2")
    kinds = [one.kind for one in find(workspace, keys)]
    assert kinds.count("dropped") == 1
    assert set(kinds) == {"dropped", "moved"}


def test_rows_and_leaves_that_are_rewritten_together_break_every_later_checkpoint(
    workspace: Path, keys: KeyFolder
) -> None:
    """Who holds the file and not the key can make rows and leaves agree, and no root."""
    shell(
        workspace,
        "UPDATE statuses SET status = 'failed'",
        "UPDATE leaves SET entry = replace(entry, '\"running\"', '\"failed\"')",
    )
    kinds = {one.kind for one in find(workspace, keys)}
    assert kinds == {"log", "rewritten"}


def test_a_database_of_another_workspace_is_named(workspace: Path, keys: KeyFolder, tmp_path: Path) -> None:
    begin(tmp_path / "other", keys, seed=2)
    go_on(tmp_path / "other", keys, DAY + timedelta(hours=1), "more")
    go_on(tmp_path / "other", keys, DAY + timedelta(hours=2), "and more")
    go_on(workspace, keys, DAY + timedelta(hours=1), "own")
    shutil.copy(tmp_path / "other" / "ledger.sqlite", workspace / "ledger.sqlite")
    assert [one.kind for one in find(workspace, keys)] == ["rewritten"]


def put_yesterday_back(workspace: Path, keys: KeyFolder, folder: Path) -> OutsideCheckpoint:
    """Go on for a day, and put the copy of the day before in its place; return the checkpoint that is gone."""
    yesterday = shutil.copytree(workspace, folder / "yesterday")
    go_on(workspace, keys, DAY + timedelta(days=1), "today")
    kept = newest(workspace)
    shutil.rmtree(workspace)
    shutil.copytree(yesterday, workspace)
    return kept


def test_an_older_copy_is_named_against_what_was_kept_outside_and_cannot_be_told_without(
    workspace: Path, keys: KeyFolder, tmp_path: Path
) -> None:
    kept = put_yesterday_back(workspace, keys, tmp_path)
    assert {one.kind for one in find(workspace, keys)} == {"older copy"}
    stranger = KeyFolder(tmp_path / "none")
    reading = verify_workspace(workspace, stranger)
    assert (reading.findings, reading.kept, reading.witnessed) == ((), (), ())
    assert [one.kind for one in verify_workspace(workspace, stranger, [kept]).findings] == ["older copy"]


def test_a_copy_that_was_put_back_and_gone_on_with_under_a_clock_set_back_is_named(
    workspace: Path, keys: KeyFolder, tmp_path: Path
) -> None:
    """The desk signs under a new name then, so that no name has two histories; and the old one stays named."""
    kept = put_yesterday_back(workspace, keys, tmp_path)
    go_on(workspace, keys, DAY + timedelta(minutes=3), "again")
    go_on(workspace, keys, DAY + timedelta(minutes=4), "and again")
    reading = verify_workspace(workspace, keys)
    assert {one.kind for one in reading.findings} == {"rewritten"}
    assert len(reading.keys) == 2
    assert "are not all here" in reading.keys[1][2]
    stranger = KeyFolder(tmp_path / "none")
    assert verify_workspace(workspace, stranger).findings == ()
    assert [one.kind for one in verify_workspace(workspace, stranger, [kept]).findings] == ["rewritten"]


def test_copies_that_both_go_on_are_told_apart_and_neither_is_a_finding(
    workspace: Path, keys: KeyFolder, tmp_path: Path
) -> None:
    copy = shutil.copytree(workspace, tmp_path / "copy")
    go_on(workspace, keys, DAY + timedelta(days=1), "today")
    for place, other in ((copy, workspace), (workspace, copy)):
        reading = verify_workspace(place, keys)
        assert reading.findings == ()
        assert any(str(other) in note for note in reading.notes) == (place == copy)
    go_on(copy, keys, DAY + timedelta(days=1), "on its own")
    assert [len(verify_workspace(place, keys).keys) for place in (copy, workspace)] == [2, 1]
    shutil.rmtree(workspace)
    assert verify_workspace(copy, keys).findings == ()


def test_a_copy_whose_newer_original_is_gone_is_named_as_older(
    workspace: Path, keys: KeyFolder, tmp_path: Path
) -> None:
    copy = shutil.copytree(workspace, tmp_path / "copy")
    go_on(workspace, keys, DAY + timedelta(days=1), "today")
    shutil.rmtree(workspace)
    assert {one.kind for one in find(copy, keys)} == {"older copy"}


def test_a_clock_that_goes_back_is_named_from_the_record_alone(workspace: Path, keys: KeyFolder) -> None:
    go_on(workspace, keys, DAY - timedelta(days=3), "back")
    assert {one.kind for one in find(workspace, keys)} == {"back-dated"}


def test_another_key_signs_on_and_a_policy_decides_whether_it_counts(
    workspace: Path, keys: KeyFolder, tmp_path: Path
) -> None:
    reading = verify_workspace(workspace, keys)
    policy = CheckpointPolicy.parse(f"log {reading.keys[0][0]}\nquorum none\n")
    assert verify_workspace(workspace, keys, policy=policy).findings == ()
    go_on(workspace, KeyFolder(tmp_path / "stranger"), DAY + timedelta(hours=1), "stranger")
    reading = verify_workspace(workspace, keys)
    assert [why for _, _, why in reading.keys] == ["the log begins", "a desk with another key writes on"]
    assert reading.findings == ()
    assert [one.kind for one in verify_workspace(workspace, keys, policy=policy).findings] == ["policy"]


def test_what_was_recorded_before_the_log_is_covered_by_its_first_leaf(
    workspace: Path, keys: KeyFolder, tmp_path: Path
) -> None:
    tables = ("leaves", "log_checkpoints", "log_keys", "erasures")
    shell(workspace, *(f"DROP TABLE {table}" for table in tables), "PRAGMA user_version = 5")
    old = KeyFolder(tmp_path / "old")
    go_on(workspace, old, DAY + timedelta(days=9), "new")
    reading = verify_workspace(workspace, old)
    assert reading.findings == ()
    assert "the log began at 2026-01-11" in reading.notes[0]
    shell(workspace, "UPDATE verdicts SET at = '2019'", "DELETE FROM calls")
    assert [(one.kind, one.what.split(" ")[0]) for one in find(workspace, old)] == [
        ("dropped", "calls"),
        ("edited", "verdicts"),
    ]


def test_leaves_of_a_process_that_died_are_signed_by_the_next_one_which_says_so(
    workspace: Path, keys: KeyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(workspace, clock=lambda: DAY + timedelta(hours=1), keys=keys) as ledger:
        monkeypatch.setattr(ledger.signer, "schedule", lambda: None)
        ledger._database.appended = lambda: None
        ledger.events.add(Event("one", "note", "unsigned", 1))
    assert "1 of " in verify_workspace(workspace, keys).notes[-1]
    go_on(workspace, keys, DAY + timedelta(hours=2), "next")
    reading = verify_workspace(workspace, keys)
    assert reading.signed == reading.size
    assert "ended before it could sign" in reading.notes[-1]


def test_what_is_written_is_signed_a_second_later(workspace: Path, keys: KeyFolder) -> None:
    before = verify_workspace(workspace, keys).signed
    with Ledger.open(workspace, clock=lambda: DAY + timedelta(hours=1), keys=keys) as ledger:
        ledger.events.add(Event("one", "note", "a", 1))
        until = time.monotonic() + 20
        while verify_workspace(workspace, keys).signed == before and time.monotonic() < until:
            time.sleep(0.05)
        assert verify_workspace(workspace, keys).signed == before + 1
        ledger.events.add(Event("one", "note", "b", 1))
    assert verify_workspace(workspace, keys).signed == before + 2


def newest(workspace: Path) -> OutsideCheckpoint:
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as connection:
        ((note,),) = connection.execute("SELECT note FROM log_checkpoints ORDER BY id DESC LIMIT 1").fetchall()
    return OutsideCheckpoint(SignedNote.parse(note), "mailed to a friend")
