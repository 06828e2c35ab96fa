"""Decisions are a sequence: two people approve where the policy says so, and nobody is bound before the run goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from alphaloom.desk.cli.main import run_command
from alphaloom.desk.decisions import CaseRequest, decide_case
from alphaloom.desk.web import Desk, build_app
from alphaloom.evaluation import Reviews, add_accepted
from alphaloom.evidence import LibraryRefused, ReviewRefused
from alphaloom.ledger import Ledger
from alphaloom.risk import Policy, RiskLimits, compare_policies, digest_policy, read_standings

from .workspace import CASE, HERE, NOON, SAME, lay, verdict

PLACE = f"/runs/r1/cases/{CASE}"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    lay(tmp_path)
    with Ledger.open(tmp_path, clock=lambda: NOON) as opened:
        yield opened


def decide(ledger: Ledger, by: str, choice: Any = "approve", comment: str = "") -> None:
    decide_case(ledger, ledger.runs.find("r1"), CaseRequest(CASE, choice, comment, by, NOON.isoformat()))


def reviews(ledger: Ledger) -> Reviews:
    return Reviews.of(ledger, ledger.runs.find("r1"))


def told(ledger: Ledger) -> Any:
    """Settle as the run goes on, and return what agents are told."""
    reviews(ledger).settle()
    event = ledger.events.get("r1", "agents.review", CASE)
    return event.body if event else None


def ask_for_two(ledger: Ledger) -> None:
    (ledger.workspace / "policy.yaml").write_text("approvals: 2\n")


def test_an_approval_takes_two_different_people(ledger: Ledger) -> None:
    ask_for_two(ledger)
    decide(ledger, "ann", comment="sound")
    assert reviews(ledger).waiting() == [CASE]
    assert told(ledger) is None
    assert CASE not in {row.factor_id for row in ledger.library.rows()}
    with pytest.raises(ReviewRefused, match="decided already"):
        decide(ledger, "ANN", comment="sound")
    decide(ledger, "Ann", comment="still sound")  # the same person anew
    assert reviews(ledger).waiting() == [CASE]
    (ledger.workspace / "policy.yaml").write_text("approvals: 1\n")  # looser: what ann needed holds
    decide(ledger, "bob", comment="agreed")
    decision = reviews(ledger).decision(CASE)
    assert decision
    assert (decision.by, decision.comment) == ("Ann and bob", "still sound\nagreed")
    body = told(ledger)
    assert body["decision"] == "approve"
    assert "bob" not in str(body)
    assert read_standings(ledger, CASE)[CASE].review == "approved"


def test_one_refusal_decides_however_many_must_approve(ledger: Ledger) -> None:
    ask_for_two(ledger)
    decide(ledger, "ann")
    decide(ledger, "bob", "reject", "too crowded")
    assert reviews(ledger).waiting() == []
    with pytest.raises(ReviewRefused, match="bob rejected it: too crowded"):
        decide(ledger, "cem")
    assert told(ledger)["decision"] == "reject"


def test_before_the_run_goes_on_a_decision_is_changed_or_taken_back(ledger: Ledger) -> None:
    with pytest.raises(ReviewRefused, match="No decision of ann"):
        decide(ledger, "ann", "undo")
    decide(ledger, "ann")
    with pytest.raises(ReviewRefused, match="one decision stands: ann approved it"):
        decide(ledger, "bob", "reject")
    ledger.verdicts.add(verdict(CASE))
    with pytest.raises(LibraryRefused, match="the approval may still change"):
        add_accepted(ledger, "r1", CASE)
    decide(ledger, "ann", "undo")
    assert reviews(ledger).waiting() == [CASE]
    decide(ledger, "ann", "reject", "on reflection")
    assert [vote.decision for vote in reviews(ledger).votes(CASE)] == ["approve", "undo", "reject"]
    assert told(ledger)["decision"] == "reject"
    assert CASE not in {row.factor_id for row in ledger.library.rows()}
    for choice in ("undo", "approve"):
        with pytest.raises(ReviewRefused, match="one decision stands") as late:
            decide(ledger, "ann", choice)
        assert "alphaloom library retire" in late.value.hint


def test_the_record_of_an_older_run_is_read(ledger: Ledger) -> None:
    old = {"decision": "approve", "comment": "fine", "by": "ann", "at": NOON.isoformat()}
    ledger.events.record("r1", "review", CASE, old)
    decision = reviews(ledger).decision(CASE)
    assert decision
    assert asdict(decision) == {"factor_id": CASE, **old, "case": "", "shown": "", "needs": 1}
    decide(ledger, "ann", "undo")
    assert reviews(ledger).waiting() == [CASE]


def test_the_policy_alone_sets_it_and_the_gate_reads_none_of_it() -> None:
    with pytest.raises(ValidationError):
        RiskLimits.model_validate({"approvals": 1})
    two = Policy(approvals=2)
    assert digest_policy(two) == digest_policy(Policy())
    assert [(one.name, one.change) for one in compare_policies(two, Policy())] == [("approvals", "tighter")]
    assert two.tightened(RiskLimits())[0].approvals == 2


def test_the_case_stays_in_the_inbox_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay(tmp_path)
    (tmp_path / "policy.yaml").write_text("approvals: 2\n")
    desk = Desk(tmp_path, lambda: NOON)
    ann, bob = (TestClient(build_app(desk), base_url=HERE, follow_redirects=False) for _ in range(2))
    ann.get(f"/enter/{desk.issue_launch('ann')}")
    bob.get(f"/enter/{desk.issue_launch('bob')}")
    stale = shown(bob)
    assert ann.post(PLACE, headers=SAME, data={"choice": "approve", "shown": shown(ann)}).status_code == 303
    assert PLACE not in ann.get("/inbox").text
    assert "Take your decision back" in ann.get(PLACE).text
    assert "One of two approvals" in bob.get("/inbox").text
    assert bob.post(PLACE, headers=SAME, data={"choice": "approve", "shown": stale}).status_code == 409
    command = ["review", "r1", CASE, "--workspace", str(tmp_path), "--by"]
    assert run_command([*command, "ann", "--undo"]) == 0
    assert run_command([*command, "ann", "--approve"]) == 0
    assert "one of two approvals, another person is needed" in capsys.readouterr().out
    assert run_command(["review", "r1", "--workspace", str(tmp_path)]) == 0
    assert "awaiting approval (approved by ann)" in capsys.readouterr().out
    assert bob.post(PLACE, headers=SAME, data={"choice": "approve", "shown": shown(bob)}).status_code == 303
    assert PLACE not in bob.get("/inbox").text


def shown(browser: TestClient) -> str:
    found = re.search(r'name="shown" value="(\w+)"', browser.get(PLACE).text)
    assert found
    return found[1]
