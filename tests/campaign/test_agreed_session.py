"""Nodes trade under the policy that people signed with `alphaloom risk policy`, and refuse under any other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.campaign import BookData, PlanRequest, execute_session
from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation import add_by_hand
from alphaloom.execution import AGREEMENT_FILE, SIGNED_POLICY_FILE, ExecutionError, HaltSwitch, OrderRecord, agree
from alphaloom.ledger import Ledger
from alphaloom.ledger.log import KeyFolder
from alphaloom.market import SyntheticConfig, simulate
from alphaloom.risk import POLICY_FILE

from . import markets
from .test_session import FACTOR, LATER, POLICY, step

pytestmark = pytest.mark.integration
MARKET = simulate(SyntheticConfig(seed=4, days=120, names=30)).panel
EXECUTION = "orders: {collar_bp: 400}\n"


def make_node(place: Path, execution: str = EXECUTION) -> Path:
    """Return a workspace whose book has one day left to trade."""
    place.mkdir()
    (place / POLICY_FILE).write_text(POLICY)
    (place / "execution.yaml").write_text(execution)
    with Ledger.open(place, clock=lambda: LATER) as record:
        add_by_hand(record, FACTOR, "2026-06-01")
        step(record, "paper", MARKET, 1)
    return place


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, Path]:
    """Return the keys' folders of two people and of a node, which asks for both signatures."""
    folders = {name: tmp_path / f"keys-{name}" for name in ("ada", "grace", "node")}
    listed = []
    for name in ("ada", "grace"):
        monkeypatch.setenv("ALPHALOOM_KEYS", str(folders[name]))
        capsys.readouterr()
        assert run_command(["risk", "policy", "key", "--by", name, "--json"]) == 0
        listed.append(json.loads(capsys.readouterr().out)["key"])
    folders["node"].mkdir()
    (folders["node"] / AGREEMENT_FILE).write_text(f"needed: 2\nkeys: {json.dumps(listed)}\n")
    monkeypatch.setenv("ALPHALOOM_KEYS", str(folders["node"]))
    return folders


def sign(folder: Path, name: str, place: Path, *options: str) -> int:
    """Sign the policies of a workspace with the keys of a folder, as a person at another machine does."""
    before = os.environ["ALPHALOOM_KEYS"]
    os.environ["ALPHALOOM_KEYS"] = str(folder)
    try:
        return run_command(["risk", "policy", "sign", "--by", name, "--workspace", str(place), *options])
    finally:
        os.environ["ALPHALOOM_KEYS"] = before


def test_of_three_nodes_the_one_with_other_limits_sends_nothing(people: dict[str, Path], tmp_path: Path) -> None:
    nodes = [make_node(tmp_path / name) for name in ("n1", "n2")]
    nodes.append(make_node(tmp_path / "n3", EXECUTION.replace("400", "4000")))
    assert sign(people["ada"], "ada", nodes[0], "--until", "2199-12-31") == 0
    assert run_command(["risk", "policy", "signed", "--workspace", str(nodes[0])]) == 1
    assert sign(people["grace"], "grace", nodes[0]) == 0
    for node in nodes[1:]:
        shutil.copy(nodes[0] / SIGNED_POLICY_FILE, node)
    panel = markets.write(markets.tidy(MARKET), tmp_path / "prices.parquet")
    command = [sys.executable, "-m", "alphaloom", "execute", "paper", "--panel", str(panel), "--json", "--workspace"]
    running = [subprocess.Popen([*command, str(node)], stdout=subprocess.PIPE, text=True) for node in nodes]
    told = [(json.loads(one.communicate()[0]), one.returncode) for one in running]
    assert [code for _, code in told] == [0, 0, 1]
    assert [facts["status"] for facts, _ in told[:2]] == ["done", "done"]
    assert (told[2][0]["code"], told[2][0]["field"]) == ("policy_agreement", "execution")
    kept = [read_plan(node) for node in nodes]
    assert [plan["agreement"]["signers"] for plan in kept[:2] if plan] == [["ada", "grace"]] * 2
    assert kept[2] is None


def read_plan(place: Path) -> Mapping[str, Any] | None:
    """Return the plan on record of the last session."""
    with Ledger.open(place, clock=lambda: LATER) as record:
        return OrderRecord(record, "book-paper", MARKET.dates[-1].item()).read().plan


def test_what_changes_after_the_signatures_stops_the_node(
    people: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node, keys = make_node(tmp_path / "n1"), KeyFolder(people["node"])
    here, today = ["--workspace", str(node), "--json"], datetime(2026, 1, 5, tzinfo=UTC)

    def refused() -> str:
        with pytest.raises(ExecutionError, check=lambda error: error.code == "policy_agreement") as raised:
            agree(node, keys, today.date())
        return raised.value.field or ""

    def read_signed() -> dict[str, Any]:
        capsys.readouterr()
        run_command(["risk", "policy", "signed", *here])
        facts: dict[str, Any] = json.loads(capsys.readouterr().out)
        return facts

    assert refused() == "file"
    assert sign(people["ada"], "ada", node) == 2  # nobody said how long it holds
    assert sign(people["ada"], "grace", node, "--until", "2199-12-31") == 0  # a name is not a key
    assert refused() == "signatures"
    assert [sign(people[name], name, node) for name in ("ada", "grace")] == [0, 0]
    facts = read_signed()
    assert ([one["signed"] for one in facts["keys"]], facts["signed"]["number"]) == ([True, True], 1)
    agreement = agree(node, keys, today.date())
    assert agreement
    with HaltSwitch(node, agreement.find_change) as switch:
        assert switch.read() is None
        (node / "execution.yaml").write_text("orders: {collar_bp: 5000}\n")
        halt = switch.read()
        assert halt
        assert halt.reason.startswith("execution.yaml")
    assert refused() == "execution"
    assert sign(people["ada"], "ada", node, "--until", "2199-11-30") == 0
    assert (read_signed()["signed"]["number"], refused()) == (2, "signatures")


def test_targets_that_laxer_limits_approved_are_not_traded(people: dict[str, Path], tmp_path: Path) -> None:
    """Otherwise whoever edits the policy for one step, and restores it, would trade what nobody signed."""
    node = make_node(tmp_path / "n1")
    (node / POLICY_FILE).write_text(POLICY.replace("2000", "100"))
    assert [sign(people[name], name, node, "--until", "2199-12-31") for name in ("ada", "grace")] == [0, 0]
    data = BookData(MARKET, "small")
    with Ledger.open(node, clock=lambda: LATER) as record:
        with pytest.raises(ExecutionError, match="laxer limits") as raised:
            execute_session(record, "paper", data, PlanRequest("paper"), LATER)
        assert (raised.value.field, raised.value.got) == ("single_name_cap_bp", 2000)
    assert read_plan(node) is None
