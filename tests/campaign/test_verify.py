"""The command that runs a campaign's verdicts again."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from starlette.testclient import TestClient

from alphaloom.desk.cli.main import run_command
from alphaloom.desk.web import Desk, build_app

from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

if TYPE_CHECKING:
    from alphaloom.evaluation import CampaignResult

BEFORE_THE_LOG = (
    "DROP TABLE leaves",
    "DROP TABLE log_checkpoints",
    "DROP TABLE log_keys",
    "PRAGMA user_version = 5",
)
"""Makes a ledger one of a version that had no transparency log."""
Verify = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def copy(finished: CampaignResult, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.folder.parents[1], tmp_path / "w"))


@pytest.fixture
def verify(copy: Path, capsys: pytest.CaptureFixture[str]) -> Verify:
    """Return what verifies the campaign and gives the exit code and what was said."""

    def ask(*words: str) -> tuple[int, dict[str, Any]]:
        code = run_command(["evidence", "verify", "latest", *words, "--workspace", str(copy), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return ask


def test_every_verdict_of_a_campaign_comes_out_the_same(verify: Verify, finished: CampaignResult) -> None:
    code, said = verify("--ledger-only")
    judged = [entry for word in ("accepted", "proven", "watchlist", "rejected") for entry in finished.record[word]]
    known = {entry["id"]: entry["trial"] for entry in judged if entry["reasons"][0]["step"] == "parse"}
    assert (code, said["depth"], said["same"], said["differ"], said["record"]) == (0, "ledger", len(known), 0, [])
    assert {row["id"]: row["trial"] for row in said["verdicts"]} == known
    assert not {"seen", "discoveries"} & {key for entry in judged for key in entry["metrics"]["selection"] or {}}
    assert {"accepted", "rejected"} <= {row["verdict"] for row in said["verdicts"]}


def test_the_desk_finds_the_same_from_the_ledger_alone(verify: Verify, copy: Path) -> None:
    _, said = verify("--ledger-only")
    desk = Desk(copy, lambda: markets.NOON)
    with TestClient(build_app(desk), base_url="http://127.0.0.1:8000") as client:
        client.get(f"/enter/{desk.issue_launch('ada')}")
        page = client.get("/record.json?verify=all").json()
    (check,) = page["checks"]
    assert (check["word"], check["faults"], page["missed"]) == ("checks out", [], "")
    assert check["sentence"].startswith(f"{len(said['verdicts'])} verdicts of {said['run']}, from the ledger alone:")


def test_the_panel_is_found_and_says_the_same_of_one_verdict(verify: Verify, finished: CampaignResult) -> None:
    name = finished.accepted[0]["id"]
    code, said = verify(name)
    assert (code, said["depth"], [row["id"] for row in said["verdicts"]]) == (0, "panel", [name])


def test_with_the_panel_it_is_said_which_ratios_were_not_computed_again(
    copy: Path, finished: CampaignResult, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["evidence", "verify", "latest", finished.accepted[0]["id"], "--workspace", str(copy)]
    assert run_command(ask) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "originality and redundancy were not: they are taken as recorded, and only held against their thresholds"
        in text
    )
    assert run_command([*ask, "--ledger-only"]) == 0
    assert "originality" not in capsys.readouterr().out


def test_another_panel_is_refused(verify: Verify, files: Files, tmp_path: Path) -> None:
    frame = pd.read_parquet(files.panel)
    frame.loc[frame.index[-1], "volume"] += 1
    code, said = verify("--panel", str(markets.write(frame, tmp_path / "other.parquet")))
    assert (code, said["code"], said["field"]) == (2, "other_panel", "--panel")
    assert "--ledger-only" in said["hint"]


def test_a_panel_that_is_named_and_not_there_is_refused(verify: Verify, tmp_path: Path) -> None:
    code, said = verify("--panel", str(tmp_path / "gone.parquet"))
    assert code == 2
    assert "gone.parquet" in f"{said['got']} {said['field']}"


def test_a_verdict_that_is_not_there_is_refused(verify: Verify) -> None:
    code, said = verify("f0123456789abcdef", "--ledger-only")
    assert (code, said["code"], said["got"]) == (2, "unknown_verdict", "f0123456789abcdef")


@pytest.mark.parametrize(("edit", "code"), [("$.p_value", 1), ("$.seen", 3)])
def test_the_exit_code_says_what_was_found(verify: Verify, copy: Path, edit: str, code: int) -> None:
    """A number that was edited differs; a look of an old version, which kept no series, cannot be run again."""
    change = "json_remove(body, '$.seen', '$.discoveries')" if code == 3 else f"json_set(body, '{edit}', 1e-9)"
    with closing(sqlite3.connect(copy / "ledger.sqlite")) as connection, connection:
        connection.execute("DROP TRIGGER outcomes_no_update")
        connection.execute(f"UPDATE outcomes SET body = {change} WHERE trial = 1")
        for statement in BEFORE_THE_LOG if code == 3 else ():
            connection.execute(statement)
    found, said = verify("--ledger-only")
    assert (found, said["differ"], said["cannot"]) == (code, code == 1, code == 3)


def test_results_that_were_edited_are_told(copy: Path, verify: Verify, capsys: pytest.CaptureFixture[str]) -> None:
    (results,) = copy.glob("runs/*/results.json")
    results.write_text(results.read_text().replace("rejected", "accepted", 1))
    code, said = verify("--ledger-only")
    assert (code, said["differ"], [row["field"] for row in said["record"]]) == (1, 0, ["results.json"])
    assert run_command(["evidence", "verify", "latest", "--workspace", str(copy), "--ledger-only"]) == 1
    page = capsys.readouterr().out
    assert "the run's record: results.json" in page
    assert "from the ledger alone" in page


def rows_removed(workspace: Path, *statements: str) -> None:
    """Remove rows as somebody does who holds the file: the guards are taken off first."""
    with closing(sqlite3.connect(workspace / "ledger.sqlite", isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        (
            [
                "DELETE FROM outcomes WHERE trial = (SELECT max(id) FROM trials)",
                "DELETE FROM verdicts WHERE factor_id = (SELECT subject FROM trials ORDER BY id DESC LIMIT 1)",
                "DELETE FROM trials WHERE id = (SELECT max(id) FROM trials)",
            ],
            "a verdict on",
        ),
        (["DELETE FROM openings"], "opening 1 of the sealed days"),
        (["DELETE FROM artefacts WHERE name = 'results.json'"], "a run that is done has its digest on record"),
        (["UPDATE trials SET at = '2001-01-01T00:00:00+00:00'"], "2001-01-01"),
        (["DELETE FROM attempts WHERE seq = 2"], "rows, numbered up to"),
    ],
)
def test_rows_that_were_taken_out_are_missed(copy: Path, verify: Verify, statements: list[str], told: str) -> None:
    assert verify("--ledger-only")[1]["record"] == []
    rows_removed(copy, *statements)
    code, said = verify("--ledger-only")
    assert code == 1
    assert any(told in f"{row['recorded']} {row['recomputed']}" for row in said["record"]), said["record"]


@pytest.mark.parametrize("name", ["results.json", "curves.json"])
@pytest.mark.parametrize(
    "command",
    [
        ["report", "latest"],
        ["resume", "latest"],
        ["evidence", "open", "latest", "--reason", "x"],
        ["factor", "combine", "latest"],
    ],
)
def test_no_command_draws_on_a_file_of_a_run_that_was_changed(
    copy: Path, capsys: pytest.CaptureFixture[str], name: str, command: list[str]
) -> None:
    (path,) = copy.glob(f"runs/*/{name}")
    path.write_text(path.read_text() + " ")
    command = ["evidence", "combine", "latest"] if command[0] == "factor" else command
    assert run_command([*command, "--workspace", str(copy), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["code"], said["got"]) == ("changed_file", str(path))
    assert "objects" in said["hint"]


def test_the_status_of_a_run_is_that_of_the_recorded_results(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = copy.glob("runs/*/results.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"ended": "a lie"}))
    assert run_command(["status", "latest", "--workspace", str(copy)]) == 0
    assert "a lie" not in capsys.readouterr().out


def test_a_run_of_a_version_that_recorded_no_curves_is_reported_and_says_so_once(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows_removed(
        copy, "DELETE FROM artefacts WHERE name = 'curves.json'", "UPDATE artefacts SET seq = 1", *BEFORE_THE_LOG
    )
    assert run_command(["report", "latest", "--workspace", str(copy)]) == 0
    assert capsys.readouterr().err.count("curves.json: no digest recorded by the version that wrote it") == 1
    assert run_command(["evidence", "verify", "latest", "--workspace", str(copy), "--ledger-only"]) == 0


def test_a_run_outside_any_workspace_is_reported_with_a_notice(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run,) = copy.glob("runs/*")
    alone = shutil.copytree(run, tmp_path / "alone")
    assert run_command(["report", str(alone)]) == 0
    assert "compared with no record" in " ".join(capsys.readouterr().err.split())


def test_what_a_campaign_leaves_behind_is_for_its_owner_alone(finished: CampaignResult) -> None:
    found = {path: path.stat().st_mode & 0o077 for path in finished.folder.parents[1].rglob("*")}
    assert {str(path): oct(bits) for path, bits in found.items() if bits and path.suffix != ".bin"} == {}
