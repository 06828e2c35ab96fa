"""Whole campaigns whose every agent asks the tiny model: poor ideas, but every path is the real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from alphaloom.ledger import Ledger, ModelCall

from .served import ROOT, Server, lacking

pytestmark = pytest.mark.slow

CAMPAIGN: dict[str, Any] = {
    "name": "tiny",
    "seed": 5,
    "market": {"synthetic": {"days": 420, "names": 60}},
    "evidence": {"windows": {"min_selection_days": 60, "min_sealed_days": 60}},
    "agents": {
        "rounds": 2, "hypotheses": 2, "candidates": 2, "drafts": 2, "steps": 1, "repairs": 1, "min_search_t": 0,
        "max_concurrency": 2, "node_retries": 8, "node_timeout_seconds": 600,
    },
    "budget": {"evaluations": 24, "trials": 4},
}  # fmt: skip  # a table
PATIENT = ("min_search_t", "node_retries", "node_timeout_seconds")
USUAL: dict[str, Any] = {
    "agents": {name: CAMPAIGN["agents"][name] for name in PATIENT},
    "budget": {"evaluations": 600, "trials": 4},
    "steer": {"hypotheses": "ideas.yaml"},
}
"""Agents by their defaults. Of five hypotheses the tiny model gives one, so most come from a file."""
IDEAS = [
    {
        "mechanism": f"{what} of {name}",
        "direction": 1,
        "horizon_days": 5,
        "fields": ["close", name],
        "regime": "any",
        "statement": f"Stocks of which the {what} of {name} is high do better than others for a week.",
        "who_is_on_the_other_side": "Those who must sell.",
        "why_it_persists": "They must sell each time.",
        "refuted_by": "no formula of it reaches a t of 3",
    }
    for what in ("level", "change", "range", "trend", "noise", "shock", "rank")
    for name in ("volume", "amount", "high", "low", "returns")
]
DEADLINE = 900.0


@dataclass
class Campaign:
    """A campaign in a workspace of its own, run by the command."""

    folder: Path
    server: Server
    process: subprocess.Popen[bytes] | None = None

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def start(self, **settings: Any) -> Campaign:
        file = self.folder / "campaign.yaml"
        models = self.server.settings(budget={"calls": 600})
        file.write_text(yaml.safe_dump(CAMPAIGN | settings | {"models": models}), encoding="utf-8")
        return self._begin("run", str(file))

    def resume(self) -> Campaign:
        return self._begin("resume", "latest")

    def _begin(self, *words: str) -> Campaign:
        command = [sys.executable, "-m", "alphaloom", *words, "--workspace", str(self.workspace)]
        with (self.folder / "said.txt").open("ab") as said:
            environment = os.environ | {"PYTHONPATH": str(ROOT / ".root")}
            self.process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
        return self

    def finish(self) -> dict[str, Any]:
        """Wait for the end, and return the results."""
        assert self.process is not None
        code = self.process.wait(DEADLINE)
        assert code in (0, 4), (self.folder / "said.txt").read_text(encoding="utf-8")[-3000:]  # 4: the budget ended it
        (file,) = self.workspace.glob("runs/*/results.json")
        results: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return results

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def calls(self) -> list[ModelCall]:
        """Return the calls on record, none before there is a record."""
        runs = [path.name for path in self.workspace.glob("runs/*")]
        if not runs or not (self.workspace / "ledger.sqlite").exists():
            return []
        with Ledger.open(self.workspace, clock=lambda: datetime.now(UTC)) as ledger:
            return [call for run in ledger.runs.all() for call in ledger.calls.of(run.id)]

    def until(self, calls: int) -> list[ModelCall]:
        """Wait until so many calls are on record, and return them."""
        assert self.process is not None
        end = time.monotonic() + DEADLINE
        while len(known := self.calls()) < calls:
            assert self.process.poll() is None, (self.folder / "said.txt").read_text(encoding="utf-8")[-3000:]
            assert time.monotonic() < end
            time.sleep(0.2)
        return known

    def finishes(self) -> list[str]:
        """Return why the model stopped, for each call on record."""
        with Ledger.open(self.workspace, clock=lambda: datetime.now(UTC)) as ledger:
            return [json.loads(ledger.objects.get(call.reply))["finish"] for call in self.calls()]


@pytest.fixture
def campaign(tmp_path: Path, server: Server) -> Iterator[Campaign]:
    campaign = Campaign(tmp_path, server)
    yield campaign
    if campaign.process is not None and campaign.process.poll() is None:
        campaign.kill()


def keys(calls: list[ModelCall]) -> list[str]:
    return [call.key for call in calls]


def settled(server: Server) -> float:
    """Return how many requests a server has had, when none is under way."""
    while (counts := server.counts())["num_requests_running"] + counts["num_requests_waiting"]:
        time.sleep(0.2)
    return counts["request_success_total"]


def test_a_campaign_through_the_server_has_only_replies_that_fit(
    campaign: Campaign, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    (campaign.folder / "ideas.yaml").write_text(yaml.safe_dump({"hypotheses": IDEAS}), encoding="utf-8")
    before = server.counts()
    results = campaign.start(**USUAL).finish()
    now, calls = server.counts(), campaign.calls()
    found, asked = (
        now[f"prefix_cache_{counter}_total"] - before[f"prefix_cache_{counter}_total"]
        for counter in ("hits", "queries")
    )
    with capsys.disabled():
        tokens = sum(call.tokens_in for call in calls) / len(calls)
        print(
            f"\n{len(calls)} calls, {tokens:,.0f} tokens of prompt each; "
            f"{found / asked:.1%} of them from the prefix cache"
        )
    assert {call.role for call in calls} == {"idea", "factor", "eval", "report"}
    assert set(campaign.finishes()) == {"stop"}
    assert results["evaluations"] > 0
    assert found / asked > 0.8


def test_a_campaign_that_is_killed_goes_on_and_pays_for_nothing_twice(campaign: Campaign, server: Server) -> None:
    known = campaign.start().until(6)
    campaign.kill()
    known = campaign.calls()
    sent = settled(server)
    campaign.resume().finish()
    after = campaign.calls()
    assert set(keys(known)) <= set(keys(after))
    assert len(set(keys(after))) == len(after)
    assert settled(server) - sent == len(after) - len(known)


def test_a_campaign_outlives_its_server(campaign: Campaign, tmp_path_factory: pytest.TempPathFactory) -> None:
    if reason := lacking():
        pytest.skip(reason)
    own = Server(tmp_path_factory.mktemp("killed"))
    campaign.server = own.start()
    try:
        campaign.start().until(6)
        known, code = campaign.calls(), own.kill()
        assert code == 3  # its supervisor tells of the failure
        own.start()
        campaign.finish()
        after = campaign.calls()
        assert set(keys(known)) <= set(keys(after))
        assert settled(own) == len(after) - len(known)
    finally:
        own.stop()
