"""A venue whose orders a decision approves, and a worker with one thing changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from alphaloom.execution import ChildOrder, DecisionInputs, ParentOrder
from alphaloom.execution.nautilus import SessionPrices
from alphaloom.execution.nautilus.venue import WORKER
from alphaloom.risk import AssetFacts, BookState, Policy, Signal, decide

from ..approvals import DAY, PROVEN

OPEN_US, CLOSE_US = 1_767_623_400_000_000, 1_767_646_800_000_000
CASH_E4 = 10**12
ROW = (100_000, 101_000, 89_000, 95_000, 10**6)
"""Open, high, low and close in 1e-4, and shares."""
CHANGED = """
import asyncio, importlib.util
found = importlib.util.spec_from_file_location("worker", {worker!r})
worker = importlib.util.module_from_spec(found)
found.loader.exec_module(worker)
{change}
worker.die_with_parent()
asyncio.run(worker.serve(worker.take_output()))
"""


def write_worker(folder: Path, change: str) -> Path:
    """Return a program that is the worker but for a change of its names."""
    path = folder / "changed.py"
    path.write_text(CHANGED.format(worker=str(WORKER), change=change))
    return path


def name_assets(count: int) -> list[str]:
    return [f"N{place:03}" for place in range(count)]


def make_inputs(assets: Sequence[str], target_e8: int = 40_000, day: date = DAY) -> DecisionInputs:
    signals = [Signal(name, target_e8, target_e8, target_e8, 5, "a test", "f0", day) for name in assets]
    facts = AssetFacts(last_price=day, jump_bp=0, volume_e8=10**12)
    state = BookState({}, dict.fromkeys(assets, facts), 10**10, 10**10, sessions=(day,))
    return DecisionInputs(signals, state, Policy(), day, PROVEN)


def make_parents(inputs: DecisionInputs, shares: int = 100) -> tuple[str, list[ParentOrder]]:
    decision = decide(inputs.signals, inputs.state, inputs.policy, inputs.now, inputs.standings)
    return decision.id, [ParentOrder(one, shares, ROW[0], inputs.now) for one in decision.approved]


def make_child(parent: ParentOrder, number: int = 0, shares: int = 0, limit_e4: int | None = None) -> ChildOrder:
    count, name = shares or abs(parent.shares), f"{parent.id}-{number}"
    child = ChildOrder(name, parent.id, parent.asset, parent.side, count, "market", None, OPEN_US)
    return child if limit_e4 is None else replace(child, kind="limit", limit_e4=limit_e4)


def make_session(assets: Sequence[str]) -> SessionPrices:
    return SessionPrices(OPEN_US, CLOSE_US, dict.fromkeys(assets, ROW))
