"""A folder that cannot be used is refused in words, and what was there stays whole."""

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.ledger import Attempt, Ledger, Run, WorkspaceError, write_json
from alphaloom.ledger.database.protocol import workspace_error
from alphaloom.ledger.database.sqlite import SqliteDatabase
from alphaloom.ledger.errors import ChangedFile

ROOT = Path(__file__).resolve().parents[2] / ".root"


def open_at(path: Path) -> Ledger:
    return Ledger.open(path, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(WorkspaceError, match="a file is in the way") as caught:
            open_at(path)
        assert "--workspace" in str(caught.value)
        assert caught.value.exit_code == 2


def test_a_file_that_is_no_ledger_is_named_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("these are my notes, not a database; do not touch them\n" * 50)
    with pytest.raises(WorkspaceError, match="is damaged, or is no ledger"):
        open_at(tmp_path)
    assert "my notes" in (tmp_path / "ledger.sqlite").read_text()


def test_a_ledger_from_the_future_is_refused(tmp_path: Path) -> None:
    open_at(tmp_path).close()
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(WorkspaceError, match="written by a newer Alphaloom") as caught:
        open_at(tmp_path)
    assert "Upgrade" in str(caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere; the next test covers it")
    tmp_path.chmod(0o500)
    with pytest.raises(WorkspaceError, match="cannot write to"):
        open_at(tmp_path / "workspace")


def test_a_folder_of_someone_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(Path, "mkdir", forbidden)
    with pytest.raises(WorkspaceError, match="cannot write to") as caught:
        open_at(tmp_path / "workspace")
    assert "Make the folder writable" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (sqlite3.OperationalError("attempt to write a readonly database"), "cannot write to"),
        (sqlite3.OperationalError("unable to open database file"), "cannot write to"),
        (sqlite3.OperationalError("database or disk is full"), "no space is left"),
        (OSError(28, "No space left on device"), "no space is left"),
        (OSError(122, "Disk quota exceeded"), "no space is left"),
        (sqlite3.DatabaseError("database disk image is malformed"), "is damaged"),
        (sqlite3.OperationalError("database is locked"), "another process holds"),
        (sqlite3.OperationalError("disk I/O error"), "disk I/O error"),
    ],
)
def test_every_way_to_fail_has_its_words(error: Exception, words: str) -> None:
    refused = workspace_error(Path("w/ledger.sqlite"), error)
    assert words in refused.message
    assert refused.hint


def test_a_closed_ledger_says_so(ledger: Ledger) -> None:
    ledger.close()
    with pytest.raises(WorkspaceError, match="is closed or misused"):
        ledger.runs.all()


FILL = """
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
sys.path.insert(0, sys.argv[1])
from alphaloom.ledger import Attempt, Ledger, Run, WorkspaceError, write_json
from alphaloom.ledger.errors import ChangedFile
workspace = Path(sys.argv[2]) / "workspace"
ledger = Ledger.open(workspace, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))
ledger.runs.start(Run("one", {}, 1, "data", "2026"))
kept = 0
try:
    for index in range(10_000):
        ledger.attempts.add(Attempt("one", f"{index:06d}", "h", "x" * 2000, None, "parse", ""))
        kept += 1
except WorkspaceError as error:
    print("said:", error.message)
ledger.close()
ledger = Ledger.open(workspace, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))
print("kept:", len(ledger.attempts.of("one")) == kept and kept > 0)
try:
    for index in range(10_000):
        ledger.objects.put(str(index).encode() * 5000)
except WorkspaceError as error:
    print("said:", error.message)
print("whole:", not list(workspace.rglob(".draft-*")))
"""


def test_a_disk_that_fills_up_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    command = shlex.join([sys.executable, "-c", FILL, str(ROOT), str(tmp_path)])
    mount = f"mount -t tmpfs -o size=1m none {shlex.quote(str(tmp_path))}"
    inside = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    try:
        probe = subprocess.run([*inside, mount], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare here to make a small disk with")
    if probe.returncode:
        pytest.skip("this system lets no one make a small disk")
    done = subprocess.run([*inside, f"{mount} && exec {command}"], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done.stderr
    assert "no space is left" in lines[0]
    assert lines[1] == "kept: True"
    assert "no space is left" in lines[2]
    assert lines[3] == "whole: True"


def test_a_failed_commit_is_rolled_back_and_the_ledger_goes_on(filed: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    database = filed._database._database
    assert isinstance(database, SqliteDatabase)
    real = database._connection

    class Full:
        def execute(self, statement: str, *values: Any) -> object:
            if statement == "COMMIT":
                raise sqlite3.OperationalError("database or disk is full")
            return real.execute(statement, *values)

    attempt = Attempt("one", "k", "h", "t", None, "parse", "")
    with monkeypatch.context() as patched:
        patched.setattr(database, "_connection", Full())
        with pytest.raises(WorkspaceError, match="no space is left"):
            filed.attempts.add(attempt)
    assert filed.attempts.of("one") == []
    assert filed.attempts.add(attempt)
    filed.runs.start(Run("two", {}, 1, "data", "2026"))


def filled(folder: Path) -> Path:
    with open_at(folder) as ledger:
        ledger.runs.start(Run("one", {}, 1, "d", "2026-01-02T00:00:00+00:00"))
        ledger.artefacts.record(
            "one", "results.json", ledger.objects.put(write_json(folder / "runs/one/results.json", {"a": 1}))
        )
    return folder


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_new_ledger_beside_runs_is_refused(tmp_path: Path, lose: Callable[[Path], object]) -> None:
    workspace = filled(tmp_path / "w")
    for left in workspace.glob("ledger.sqlite-*"):
        left.unlink()
    lose(workspace / "ledger.sqlite")
    for _ in range(2):  # the refusal makes nothing that lets the next one pass
        with pytest.raises(WorkspaceError, match="holds 1 run, such as one, and their record is gone") as caught:
            open_at(workspace)
        assert "prior_trials" in caught.value.hint
        assert "Restore" in caught.value.hint


def test_a_workspace_in_which_nothing_ran_may_begin_anew(tmp_path: Path) -> None:
    open_at(tmp_path).close()
    (tmp_path / "ledger.sqlite").unlink()
    open_at(tmp_path).close()


def test_a_file_that_was_changed_since_it_was_recorded_is_refused(tmp_path: Path) -> None:
    workspace = filled(tmp_path)
    results = workspace / "runs/one/results.json"
    with open_at(workspace) as ledger:
        assert ledger.artefacts.check("one") == []
        results.write_text(results.read_text().replace("1", "2"))
        with pytest.raises(
            ChangedFile, match=r"results.json of run one is not the file that the ledger recorded"
        ) as caught:
            ledger.artefacts.check("one")
        assert ledger.artefacts.read("one", "results.json") == b'{\n "a": 1\n}\n'
        original = caught.value.hint.partition("copy ")[2].partition(" over")[0]
        shutil.copy(original, results)
        assert ledger.artefacts.check("one") == []
        results.unlink()
        with pytest.raises(ChangedFile, match="is gone"):
            ledger.artefacts.check("one")


def test_a_file_that_no_version_recorded_is_named(tmp_path: Path) -> None:
    workspace = filled(tmp_path)
    write_json(workspace / "runs/one/curves.json", {})
    with open_at(workspace) as ledger:
        assert ledger.artefacts.check("one") == ["curves.json"]
        assert ledger.artefacts.read("one", "curves.json") is None


def forged(workspace: Path, *statements: str) -> None:
    """Do what somebody does who holds the file: the guards are taken off first."""
    with closing(sqlite3.connect(workspace / "ledger.sqlite", isolation_level=None)) as connection:
        guards = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in guards:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM events WHERE seq = 2", ("events", "2 rows, numbered up to 3", "1 are gone")),
        ("UPDATE runs SET at = '2001-01-01T00:00:00+00:00'", ("runs", "2001-01-01T00:00:00+00:00")),
        ("UPDATE events SET at = '2001-01-01T00:00:00+00:00'", ("events", "2001-01-01T00:00:00+00:00")),
        ("UPDATE statuses SET at = 'no time' WHERE seq = 2", ("statuses", "row 2 at no time")),
    ],
)
def test_gaps_and_times_that_go_back_are_found(tmp_path: Path, statement: str, told: tuple[str, ...]) -> None:
    workspace = filled(tmp_path)
    with open_at(workspace) as ledger:
        for key in ("a", "b", "c"):
            ledger.events.record("one", "note", key, {})
        ledger.runs.finish("one", "done")
        assert ledger.runs.breaks(ledger.runs.find("one")) == []
    forged(workspace, statement)
    with open_at(workspace) as ledger:
        found = [
            (difference.table, difference.recorded, difference.said)
            for difference in ledger.runs.breaks(ledger.runs.find("one"))
        ]
    assert any(field[: len(told)] == told for field in found), found
