"""The page of the record: what verifying found, bounded, and what people decided, but not before a blind judgement."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from alphaloom.campaign.changes import BenchCheck, BenchResult, record_versions
from alphaloom.campaign.changes.bench_record import BENCH_EVENT
from alphaloom.campaign.changes.versions import UsedVersion
from alphaloom.desk.blind import BlindJudgement, record_judgement
from alphaloom.desk.decisions import CaseRequest, decide_case
from alphaloom.desk.web import Desk, record
from alphaloom.evaluation import Reviews
from alphaloom.ledger import Run, ask_to_stop
from alphaloom.ledger.calls import CallLog, CallOutcome, ToolCall
from alphaloom.risk import acknowledge_alarm, list_alarms

from .workspace import CASE, LEAK, NOON, SCRIPT, lay


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    lay(tmp_path)
    return Desk(tmp_path, lambda: NOON)


def decide_twice(desk: Desk) -> None:
    """Approve the case as ann, who judged it first, and acknowledge the alarm as bob, a minute later."""
    with desk.open() as ledger:
        run = ledger.runs.find("r1")
        if (desk.workspace / "policy.yaml").exists():
            judgement = BlindJudgement(CASE, "approve", 70, "ann", NOON.isoformat())
            record_judgement(Reviews.of(ledger, run), judgement)
        decide_case(ledger, run, CaseRequest(CASE, "approve", SCRIPT, "ann", NOON.isoformat()))
    with Desk(desk.workspace, lambda: NOON + timedelta(minutes=1)).open() as ledger:
        acknowledge_alarm(ledger, list_alarms(ledger)[0], "the fields are of the close", "bob", NOON)
        ask_to_stop(ledger.events, "r1", "ann")
        body = {"by": "ann", "reason": "it still earns", "at": NOON.isoformat(), "status": "live", "digest": ""}
        ledger.events.record("r1", "revalidation", f"{LEAK}/0001", body)


def test_people_s_decisions_are_listed_with_their_pages_and_reasons(desk: Desk, client: TestClient) -> None:
    decide_twice(desk)
    (desk.workspace / "policy.yaml").write_text(
        f"exceptions: [{{evidence: {LEAK}, rule: original, reason: known twin, owner: ann, until: 2026-05-31}}]\n"
    )
    page = client.get("/record.json").json()
    assert {(one["who"], one["what"], one["why"]) for one in page["deeds"]} == {
        ("ann", "approved", SCRIPT),
        ("bob", "acknowledged a leak alarm (RankIC +0.200)", "the fields are of the close"),
        ("ann", "asked a campaign to stop", ""),
        ("ann", "looked at a factor again: it stays", "it still earns"),
    }
    assert page["deeds"][-1]["href"] == f"/runs/r1/cases/{CASE}"
    assert (page["overrides"][0]["owner"], page["checks"], page["calls"]) == ("ann", [], None)
    assert "<script>alert" not in client.get("/record").text
    for one in page["deeds"]:
        assert client.get(one["href"]).status_code == 200


def test_who_has_yet_to_judge_blind_is_told_of_no_decision_and_no_difference(desk: Desk, client: TestClient) -> None:
    (desk.workspace / "policy.yaml").write_text("judge_blind: true\napprovals: 2\n")
    decide_twice(desk)
    page = client.get("/record.json?verify=r1").json()
    assert "approved" not in {one["what"] for one in page["deeds"]}
    assert page["checks"][0]["faults"] == [record.HIDDEN_NOTE]
    with desk.open() as ledger:
        judgement = BlindJudgement(CASE, "unsure", 50, "ada", NOON.isoformat())
        record_judgement(Reviews.of(ledger, ledger.runs.find("r1")), judgement)
    page = client.get("/record.json?verify=r1").json()
    assert "approved" in {one["what"] for one in page["deeds"]}
    assert page["checks"][0]["faults"] != [record.HIDDEN_NOTE]


def test_a_verdict_that_cannot_be_made_again_is_named(client: TestClient) -> None:
    (check,) = client.get("/record.json?verify=r1").json()["checks"]
    assert check["word"] == "differs"
    assert any(line.startswith(f"{LEAK}: record: ") for line in check["faults"])
    assert client.get("/record.json?verify=none").json()["code"] == "unknown_run"


def test_a_check_ends_in_time_and_is_alone(desk: Desk, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk.open() as ledger:
        ledger.runs.start(Run("r2", {"settings": {}}, 1, "d", NOON.isoformat()))
    monkeypatch.setattr(record, "MAX_VERIFY_SECONDS", -1.0)
    page = client.get("/record.json?verify=all").json()
    assert page["checks"] == []
    assert page["missed"].startswith("2 of 2 campaigns were not reached")
    with record._verifying:
        assert client.get("/record?verify=all").status_code == 503
    assert client.get("/record").status_code == 200


def test_a_changed_log_of_calls_is_found(desk: Desk, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/record.json?verify=calls").json()["calls"]["sound"] is None
    with CallLog.open(desk.workspace / "audit", clock=lambda: NOON) as log:
        for name in ("prices", "fields"):
            log.append(ToolCall("bob", "market", name, CallOutcome.OK, "", rows=3, bytes=10, duration_ms=1.5))
    calls = client.get("/record.json?verify=calls").json()["calls"]
    assert calls["sound"], calls
    monkeypatch.setattr(record, "MAX_LOG_BYTES", 1)
    assert client.get("/record.json?verify=calls").json()["calls"]["sound"] is None
    monkeypatch.undo()
    (segment,) = (desk.workspace / "audit").glob("calls-*.jsonl")
    segment.write_text(segment.read_text().replace("bob", "eve"))
    calls = client.get("/record.json?verify=calls").json()["calls"]
    assert calls["sound"] is False


def test_the_page_lists_changes_and_the_last_bench_with_their_texts_escaped(desk: Desk, client: TestClient) -> None:
    assert "No campaign has recorded" in client.get("/record").text
    used = [UsedVersion("prompt", "idea", "old\n"), UsedVersion("model", SCRIPT, "{}\n")]
    with desk.open() as ledger:
        record_versions(ledger, "r1", used, "ann")
        record_versions(ledger, "r1", [UsedVersion("prompt", "idea", f"new {SCRIPT}\x1b[2J\n")], "bob")
        check = BenchCheck("null market", passed=False, needed="nothing", found=SCRIPT)
        result = BenchResult("", "r1", "mine", {}, (check,), 3, 0.5, passed=False)
        ledger.events.record("r1", BENCH_EVENT, "result", result.body())
    page = client.get("/record.json").json()
    assert [(one["label"], one["word"], one["account"]) for one in page["changes"]] == [
        ("prompt idea", "changed", "bob"),
        (f"model {SCRIPT}", "on record from here", "ann"),
        ("prompt idea", "on record from here", "ann"),
    ]
    assert page["changes"][0]["diff"] == ["-old", f"+new {SCRIPT} [2J"]
    assert page["bench"][1][0].startswith("FAILED: null market: ")
    text = client.get("/record").text
    assert "<script>alert" not in text
    assert "\x1b" not in text


def test_the_page_says_who_witnessed_the_record_what_differs_and_what_cannot_be_told(
    desk: Desk, client: TestClient
) -> None:
    log = client.get("/record.json?verify=record").json()["log"]
    assert (log["sound"], log["verdict"], log["findings"]) == (True, "every row is as it was written", [])
    assert log["witnesses"] == ["none has seen this history"]
    assert any("wrote the history anew" in line for line in log["limits"])
    database = sqlite3.connect(desk.workspace / "ledger.sqlite")
    with closing(database), database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE verdicts SET body = replace(body, 'accepted', 'rejected')")
    log = client.get("/record.json?verify=record").json()["log"]
    assert (log["sound"], log["verdict"]) == (False, "2 findings")
    assert {line.split(":")[0] for line in log["findings"]} == {"edited", "schema"}
    assert "Who witnessed this history" in client.get("/record?verify=record").text
