"""Attacks without the key that a verification must name, and honest deeds that it must not."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.ledger import Event, Ledger, Run
from alphaloom.ledger.calls import CALLS_FOLDER
from alphaloom.ledger.database.schema import LOGGED_TABLES
from alphaloom.ledger.errors import WorkspaceError
from alphaloom.ledger.log import KeyFolder, LogReading, NoteError, SignedNote, verify_workspace
from alphaloom.ledger.log.checkpoint import Checkpoint
from alphaloom.ledger.log.keys import LOG_KEY, SIGNED
from alphaloom.ledger.log.leaves import encode_leaf
from alphaloom.ledger.log.note import KIND_LOG, SigningKey
from alphaloom.ledger.log.reader import read_rows
from alphaloom.ledger.log.tree import Frontier, encode_nodes, hash_leaf

from .conftest import DAY, begin, go_on, shell

EDIT = "UPDATE verdicts SET body = '{\"accepted\":true}'"
NO_LOG = ("DELETE FROM leaves", "DELETE FROM log_keys", "DELETE FROM log_checkpoints")
HOUR = timedelta(hours=1)
OLD_LOG = ("DROP TABLE leaves", "DROP TABLE log_checkpoints", "DROP TABLE log_keys", "PRAGMA user_version = 5")


def kinds(workspace: Path, keys: KeyFolder) -> set[str]:
    return {one.kind for one in verify_workspace(workspace, keys).findings}


def rebuild(workspace: Path, name: str) -> None:
    """Write all leaves and checkpoints anew under a key of somebody else."""
    key = SigningKey(name, KIND_LOG, b"throwaway" * 3 + b"12345")
    shell(workspace, EDIT, *NO_LOG)
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as base:
        named = {"id": 1, "vkey": str(key.verifier), "why": "the log begins", "at": DAY.isoformat()}
        base.execute("INSERT INTO log_keys VALUES (?, ?, ?, ?)", tuple(named.values()))
        tree = Frontier()
        rows = [
            (table, row) for table in LOGGED_TABLES for _, row in read_rows(lambda q: base.execute(q).fetchall(), table)
        ]
        for table, row in [*rows, *(("events", {"seq": 900 + n, "key": "x"}) for n in range(30))]:
            entry = encode_leaf(table, row, b"s" * 16)
            base.execute("INSERT INTO leaves (entry) VALUES (?)", (entry,))
            tree.push(hash_leaf(entry.encode()))
        text = str(Checkpoint(name, tree.size, tree.root()))
        note = str(SignedNote(text, (key.sign(text),)))
        base.execute(
            "INSERT INTO log_checkpoints (size, nodes, note) VALUES (?, ?, ?)", (tree.size, encode_nodes(tree), note)
        )
        base.commit()


@pytest.mark.parametrize("how", ["emptied", "of an earlier version", "another name", "the same name"])
def test_a_log_that_was_written_anew_is_named_before_and_after_the_next_run(
    workspace: Path, keys: KeyFolder, how: str
) -> None:
    go_on(workspace, keys, DAY + HOUR, "own")
    name = verify_workspace(workspace, keys).origin
    if how == "emptied":
        shell(workspace, EDIT, *NO_LOG)
    elif how == "of an earlier version":
        shell(workspace, EDIT, *OLD_LOG)
    else:
        rebuild(workspace, "alphaloom/another" if how == "another name" else name)
    for turn in range(2, 4):
        if how != "of an earlier version" or turn > 2:
            assert "rewritten" in kinds(workspace, keys)
        go_on(workspace, keys, DAY + turn * HOUR, f"next {turn}")
    assert "rewritten" in kinds(workspace, keys)


def test_a_record_that_was_moved_and_put_back_at_an_older_state_is_named(
    workspace: Path, keys: KeyFolder, tmp_path: Path
) -> None:
    """The folder held the log itself: what is there now is no copy of it, also if the newer one is still elsewhere."""
    go_on(workspace, keys, DAY + HOUR, "day 1")
    yesterday = shutil.copytree(workspace, tmp_path / "yesterday")
    moved = workspace.rename(tmp_path / "x")
    go_on(moved, keys, DAY + 2 * HOUR, "day 2")
    assert kinds(moved, keys) == set()
    shutil.copytree(yesterday, workspace)
    assert kinds(workspace, keys) == {"older copy"}
    shutil.rmtree(moved)
    for turn in range(3, 5):
        assert kinds(workspace, keys) & {"older copy", "rewritten"}
        go_on(workspace, keys, DAY + turn * HOUR, f"again {turn}")
    assert kinds(workspace, keys) == {"rewritten"}


def test_a_link_that_is_swapped_for_an_older_copy_is_named(workspace: Path, keys: KeyFolder, tmp_path: Path) -> None:
    go_on(workspace, keys, DAY + HOUR, "before")
    moved = workspace.rename(tmp_path / "x")
    workspace.symlink_to(moved)
    go_on(workspace, keys, DAY + 2 * HOUR, "by the link")
    yesterday = shutil.copytree(moved, tmp_path / "yesterday")
    go_on(workspace, keys, DAY + 3 * HOUR, "by the link again")
    assert verify_workspace(workspace, keys).findings == ()
    workspace.unlink()
    shutil.copytree(yesterday, workspace)
    go_on(workspace, keys, DAY + 4 * HOUR, "while the newer one is there")
    shutil.rmtree(moved)
    assert kinds(workspace, keys) == {"rewritten"}


def make_anew(workspace: Path, keys: KeyFolder, _: Path) -> list[Path]:
    go_on(workspace, keys, DAY + HOUR, "old")
    shutil.rmtree(workspace)
    begin(workspace, keys, seed=7)
    return [workspace]


def make_anew_and_kill(workspace: Path, keys: KeyFolder, _: Path) -> list[Path]:
    go_on(workspace, keys, DAY + HOUR, "old")
    shutil.rmtree(workspace)
    ledger = Ledger.open(workspace, clock=lambda: DAY, keys=keys)
    ledger._database.appended = lambda: None
    ledger.runs.start(Run("one", {}, 1, "data", "2026-01-02"))
    ledger._database.close()  # neither closed nor signed
    return [workspace]


def move(workspace: Path, keys: KeyFolder, folder: Path) -> list[Path]:
    go_on(workspace, keys, DAY + HOUR, "a")
    for turn, name in enumerate(("b", "c"), start=2):
        workspace = workspace.rename(folder / name)
        go_on(workspace, keys, DAY + turn * HOUR, name)
    back = workspace.rename(folder / "b")
    go_on(back, keys, DAY + 4 * HOUR, "back")
    return [back]


def copy_twice(workspace: Path, keys: KeyFolder, folder: Path) -> list[Path]:
    """Copies of a copy go on before the original and after it, and one of them is moved."""
    go_on(workspace, keys, DAY + HOUR, "a")
    first = shutil.copytree(workspace, folder / "first")
    go_on(first, keys, DAY + 2 * HOUR, "first")
    second = shutil.copytree(first, folder / "second")
    go_on(workspace, keys, DAY + 3 * HOUR, "a again")
    go_on(second, keys, DAY + 3 * HOUR, "second")
    go_on(first, keys, DAY + 4 * HOUR, "first again")
    shutil.rmtree(workspace)
    return [first.rename(folder / "third"), second]


def share_keys(workspace: Path, keys: KeyFolder, folder: Path) -> list[Path]:
    """Two containers with one folder of keys see their own record under one path."""
    go_on(workspace, keys, DAY + HOUR, "machine 1")
    first = workspace.rename(folder / "machine 1")
    begin(workspace, keys, seed=8)
    second = workspace.rename(folder / "machine 2")
    for turn, own in ((2, first), (3, second)):
        own.rename(workspace)
        go_on(workspace, keys, DAY + turn * HOUR, own.name)
        assert verify_workspace(workspace, keys).findings == ()
        workspace.rename(own)
    return [Path(shutil.copytree(first, workspace))]


@pytest.mark.parametrize("deed", [make_anew, make_anew_and_kill, move, copy_twice, share_keys])
def test_an_honest_deed_is_no_finding(
    workspace: Path, keys: KeyFolder, tmp_path: Path, deed: Callable[[Path, KeyFolder, Path], list[Path]]
) -> None:
    for place in deed(workspace, keys, tmp_path):
        assert verify_workspace(place, keys).findings == ()
        go_on(place, keys, DAY + timedelta(days=1), "at last")
        assert verify_workspace(place, keys).findings == ()


def test_a_person_can_acknowledge_an_older_copy_and_a_clock_and_the_record_says_so(
    workspace: Path, keys: KeyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yesterday = shutil.copytree(workspace, tmp_path / "yesterday")
    go_on(workspace, keys, DAY + HOUR, "today")
    shutil.rmtree(workspace)
    yesterday.rename(workspace)
    go_on(workspace, keys, DAY + timedelta(days=365), "clock ahead")
    go_on(workspace, keys, DAY + 2 * HOUR, "clock mended")
    go_on(workspace, keys, DAY + 3 * HOUR, "and on")
    assert [one.kind for one in verify_workspace(workspace, keys).findings] == ["rewritten", "back-dated"]
    monkeypatch.setenv("ALPHALOOM_KEYS", str(keys.folder))
    assert run_command(["record", "acknowledge", str(workspace), "--reason", "restored from a copy"]) == 0
    reading = verify_workspace(workspace, keys)
    assert reading.findings == ()
    assert "acknowledged: restored from a copy" in " ".join(reading.notes)
    assert "a person acknowledged that" in " ".join(reading.notes)
    shell(workspace, EDIT)
    assert kinds(workspace, keys) == {"edited"}


PLANTED = (
    "CREATE TRIGGER planted BEFORE INSERT ON outcomes BEGIN SELECT RAISE(IGNORE); END",
    "CREATE TRIGGER planted BEFORE INSERT ON log_checkpoints BEGIN SELECT RAISE(ABORT, 'x'); END",
    "CREATE VIEW planted AS SELECT 1",
    "DROP TRIGGER verdicts_no_update",
    "DROP INDEX calls_by_key",
    "ALTER TABLE events ADD COLUMN planted TEXT",
)


@pytest.mark.parametrize("statement", PLANTED)
def test_another_schema_is_named(workspace: Path, keys: KeyFolder, statement: str) -> None:
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as base:
        base.execute(statement)
    (one,) = verify_workspace(workspace, keys).findings
    assert one.kind == "schema"


def test_a_run_whose_leaves_cannot_be_signed_says_so_once_and_closes(
    workspace: Path, keys: KeyFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as base:
        base.execute(PLANTED[1])
    go_on(workspace, keys, DAY + HOUR, "a")
    go_on(workspace, keys, DAY + timedelta(days=9), "b")
    assert capsys.readouterr().err.count("could not be signed") == 1
    reading = verify_workspace(workspace, keys)
    assert reading.late == reading.size - reading.signed == 6
    assert any("WARNING" in note for note in reading.notes)
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as base:
        base.execute("DROP TRIGGER planted")
    go_on(workspace, keys, DAY + timedelta(days=9), "c")
    assert verify_workspace(workspace, keys).late == 9


def add_leaf(workspace: Path, entry: str) -> LogReading:
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as base:
        base.execute("INSERT INTO leaves (entry) VALUES (?)", (entry,))
        base.commit()
    return verify_workspace(workspace, KeyFolder(workspace.parent / "keys"))


@pytest.mark.parametrize(
    "entry",
    [
        '{"table":"events","row":{"seq":9,"at":"2019-13"},"salt":""}',
        "[" * 200_000,
        '{"table":"events","row":{"seq":9,"x":NaN}}',
        '{"table":"events","row":{"seq":' + "9" * 5_000 + "}}",
        '{"table":"\\ud800","row":{"seq":1}}',
        '{"table":"state","row":{"seq":1}}',
    ],
)
def test_a_forged_leaf_is_a_finding_and_no_crash(workspace: Path, keys: KeyFolder, entry: str) -> None:
    assert add_leaf(workspace, entry).findings


@pytest.mark.parametrize("deed", ["folder", "segment", "run"])
def test_files_that_are_taken_away_are_named(
    workspace: Path, keys: KeyFolder, deed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ALPHALOOM_KEYS", str(keys.folder))
    with Ledger.open(workspace, clock=lambda: DAY + HOUR, keys=keys) as ledger:
        ledger.artefacts.record(
            "one", "results.json", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        )
    (workspace / "runs" / "one").mkdir(exist_ok=True)
    (workspace / "runs" / "one" / "results.json").write_text("{}")
    assert run_command(["record", "verify", str(workspace)]) == 0
    audit = workspace / CALLS_FOLDER
    if deed == "segment":
        for segment in audit.glob("calls-*"):
            segment.unlink()
        (audit / "heads.json").unlink()
    else:
        shutil.rmtree(workspace / "runs" / "one" if deed == "run" else audit)
    capsys.readouterr()
    assert run_command(["record", "verify", str(workspace)]) == 1
    assert "gone" in capsys.readouterr().out


def test_a_workspace_that_also_holds_its_export_is_verified_as_a_workspace(
    workspace: Path, keys: KeyFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ALPHALOOM_KEYS", str(keys.folder))
    assert run_command(["record", "export", str(workspace / "public"), "--workspace", str(workspace)]) == 0
    shell(workspace, EDIT)
    shutil.copytree(workspace / "public", workspace, dirs_exist_ok=True)
    shutil.rmtree(workspace / "runs")
    assert run_command(["record", "verify", str(workspace)]) == 1
    assert "edited: verdicts 1" in capsys.readouterr().out


def test_what_is_remembered_late_does_not_take_back_what_was_remembered_since(workspace: Path, keys: KeyFolder) -> None:
    name = verify_workspace(workspace, keys).origin
    go_on(workspace, keys, DAY + HOUR, "a")
    here = str(workspace)
    (last,) = [one for one in keys.recall(SIGNED, name) if one.about == here]
    go_on(workspace, keys, DAY + 2 * HOUR, "b")
    (newer,) = [one for one in keys.recall(SIGNED, name) if one.about == here]
    keys.remember(SIGNED, name, last.note, here)
    assert keys.recall(SIGNED, name) == [newer]
    assert newer.checkpoint.size > last.checkpoint.size


def test_a_key_appears_whole_or_not_at_all_and_an_empty_one_is_said_once(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = KeyFolder(tmp_path / "new keys")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("os.fsync", interrupt)
        keys.make_seed(LOG_KEY)
    assert list(keys.folder.iterdir()) == []
    (keys.folder / LOG_KEY).touch()
    go_on(workspace, keys, DAY + HOUR, "a")
    go_on(workspace, keys, DAY + 2 * HOUR, "b")
    assert capsys.readouterr().err.count("holds no key") == 1


def interrupt(_: Any) -> None:
    raise KeyboardInterrupt


def test_the_desk_says_what_it_cannot_remember(workspace: Path, keys: KeyFolder) -> None:
    shutil.rmtree(keys.folder / SIGNED)
    (keys.folder / SIGNED).touch()
    with Ledger.open(workspace, clock=lambda: DAY + HOUR, keys=keys) as ledger:
        ledger.events.add(Event("one", "note", "a", 1))
        with pytest.raises(NoteError, match="no checkpoint can be kept"):
            ledger.signer.sign()


def test_a_workspace_may_have_any_path(workspace: Path, keys: KeyFolder, tmp_path: Path) -> None:
    strange = workspace.rename(tmp_path / "w\udcff")
    go_on(strange, keys, DAY + HOUR, "a")
    assert verify_workspace(strange, keys).findings == ()


def test_rows_that_only_the_write_ahead_log_has_are_not_left_out(
    workspace: Path, keys: KeyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder in which SQLite may make no file is read as it is, unless that would leave rows out."""

    def connect(place: str, **options: Any) -> sqlite3.Connection:
        if "mode=ro" in place:
            raise sqlite3.OperationalError("unable to open database file")
        return real(place, **options)

    real = sqlite3.connect
    monkeypatch.setattr("alphaloom.ledger.log.reader.sqlite3.connect", connect)
    assert verify_workspace(workspace, keys).findings == ()
    (workspace / "ledger.sqlite-wal").write_bytes(b"rows")
    with pytest.raises(WorkspaceError, match="newest rows"):
        verify_workspace(workspace, keys)
