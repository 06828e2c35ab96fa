"""What a run's log says: in order, in plain words, some at a time."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from alphaloom.desk.cli.campaign import log
from alphaloom.desk.cli.campaign.log import Chronicle
from alphaloom.desk.cli.main import run_command
from alphaloom.ledger import Event, Ledger, Run, VerdictRow
from alphaloom.ledger.database.register import RegisterEntry

Capture = pytest.CaptureFixture[str]
MINUS = "\N{MINUS SIGN}"
BEGAN = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC)
REASONS = [
    {"step": "parse", "passed": True, "message": "parses", "numbers": {}},
    {"step": "statistics", "passed": False, "message": "p = 0.2 on selection", "numbers": {"p_value": 0.2}},
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a workspace with a run in which one thing of each kind happened, a second apart."""
    ticks = itertools.count()
    with Ledger.open(tmp_path, clock=lambda: BEGAN + timedelta(seconds=next(ticks))) as ledger:
        ledger.runs.start(Run("r1", {"settings": {}}, 7, "made up", BEGAN.isoformat()))
        said = {"mechanism": "slow_money", "statement": "It\x1b[31m drifts.", "direction": -1, "horizon_days": 5}
        passages = ["Quiet  names\ndrift.", "b"]
        row = {"document": "ab12", "untrusted_name": "desk.md", "untrusted_passages": passages}
        ledger.events.record("r1", "agents.recall", "r01", {"factors": [], "documents": [row]})
        why = {"error": "ModelFailed", "reason": "models.qwen: no reply\nIt does not answer."}
        ledger.events.record("r1", "agents.failure", "idea/r01/1", why)
        ledger.events.record("r1", "agents.hypothesis", "r01/h00", {**said, "refuted_by": "no drift"})
        items = [{"key": "r01/h00/s0/c0/a0", "text": "rank(close)", "intent": "explore", "rationale": "because"}]
        ledger.events.record("r1", "agents.proposal", "r01/h00/s0/a0", {"items": items})
        score = {"text": "rank(close)", "intent": "explore", "branch": "r01/h00"}
        refused = {"ok": False, "stage": "types", "errors": [{"message": "price and volume", "hint": "", "at": 3}]}
        ledger.events.record("r1", "agents.score", "r01/h00/s0/c1/a0", score | refused)
        sheet = {"t": -3.456, "rank_ic": -0.02}
        scored = {"ok": True, "id": "f1", "sheet": sheet, "weaknesses": [{"code": "turnover", "message": "fast"}]}
        ledger.events.record("r1", "agents.score", "r01/h00/s0/c0/a0", score | scored)
        critique = {"weaknesses": [{"code": "turnover", "message": "half a day"}], "keep": True}
        advice = [{"operator": "swap_field", "why": "close is noisy"}]
        ledger.events.record("r1", "agents.critique", "r01/h00/s0", {**critique, "advice": advice})
        child = {"parent": "f1", "parent_t": -3.456, "where": "turnover", "intent": "smooth"}
        ledger.events.record("r1", "agents.score", "r01/h00/s1/c0/a0", {**score, **scored, **child, "id": "f2"})
        rows = [
            {"operator": "smooth", "where": where, "tried": 2, "better": 1, "gained": 0.5} for where in ("none", "weak")
        ]
        ledger.events.record("r1", "agents.operators", "r01", {"rows": rows})
        ledger.verdicts.add(VerdictRow("r1", "f1", "rejected", REASONS, {"trial": 1, "selection": None}))
        decision = {"decision": "ask", "comment": "slower", "by": "ann", "at": BEGAN.isoformat()}
        ledger.events.record("r1", "review", "f1", decision)
        ledger.events.record("r1", "stop", "000001", {"by": "ann"})
        ledger.runs.finish("r1", "stopped")
    return tmp_path


def test_everything_is_told_in_order_and_in_plain_words(workspace: Path, capsys: Capture) -> None:
    assert run_command(["log", "r1", "--workspace", str(workspace)]) == 0
    output = capsys.readouterr().out
    wanted = [
        "2026-03-02", "the run begins", 'told of desk.md (ab12): 2 passages: "Quiet names drift.',
        "r01, failure 1: models.qwen: no reply It does not answer.", "hypothesis r01/h00, slow money: It?[31m drifts.",
        "expects higher values, lower returns over 5 days; refuted by: no drift", "1 formula for r01/h00",
        "explore: rank(close)", "refused at types: rank(close)", "price and volume",
        f"scored f1: t {MINUS}3.46, RankIC {MINUS}0.0200 on search: rank(close)", "weak: turnover",
        "r01/h00 goes on after step 0", "asks to swap field: close is noisy", "scored f2",
        f"smooth of f1 (t {MINUS}3.46, turnover)", "what changes did until the end of r01", "smooth: 2 of 4, +0.25",
        "f1 rejected: statistics: p = 0.2 on selection", "f1: ann asked for a change of it: slower",
        "ann asks the run to stop", "the run stops, to be gone on with",
    ]  # fmt: skip  # a table
    places = [output.find(line) for line in wanted]
    assert -1 not in places
    assert places == sorted(places)
    assert "\x1b" not in output


def test_as_json_each_line_is_an_object(workspace: Path, capsys: Capture) -> None:
    assert run_command(["log", "latest", "--workspace", str(workspace), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["what"] for row in rows][:3] == ["running", "documents", "no answer"]
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    assert {row["who"] for row in rows} == {"run", "idea", "factor", "eval", "gate", "person"}


def test_followed_it_goes_on_until_nobody_works_on_the_run(workspace: Path) -> None:
    with Ledger.open(workspace, clock=lambda: BEGAN + timedelta(hours=1)) as ledger:
        pauses: list[float] = []

        def wait(seconds: float) -> None:
            pauses.append(seconds)
            ledger.events.record("r1", "agents.hypothesis", f"r0{len(pauses) + 1}/h00", {"statement": "more"})

        running = iter([True, True, False])
        followed = log.follow_chronicle(Chronicle(ledger, "r1"), lambda: next(running), wait)
        told = [(event.what, event.key) for event in followed]
        assert told[-2:] == [("hypothesis", "r02/h00"), ("hypothesis", "r03/h00")]
        assert len(told) == len(set(told))


def test_ctrl_c_ends_a_log_without_a_trace(workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(log, "follow_chronicle", interrupted)
    assert run_command(["log", "r1", "--follow", "--workspace", str(workspace)]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_run_without_end_is_read_some_at_a_time() -> None:
    """Two million events would not fit: those that were not asked for are not read."""
    read: list[int] = []

    def endless(run: str, place: int) -> Iterator[RegisterEntry[Event]]:
        for number in range(2_000_000):
            read.append(number)
            yield RegisterEntry(number, f"{number:09d}", Event(run, "stop", str(number), {"by": "ann"}))

    ledger: Any = SimpleNamespace(
        events=SimpleNamespace(entries=endless),
        verdicts=SimpleNamespace(entries=lambda run, place: iter(())),
        runs=SimpleNamespace(statuses=lambda run: []),
    )
    chronicle = Chronicle(ledger, "r1")
    assert len(list(itertools.islice(chronicle.read(), 1_000))) == 1_000
    assert len(read) < 1_010
