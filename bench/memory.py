"""The size of the Idea agent's prompt after 100, 1,000 and 10,000 factors, and what it costs to make.

python -m bench.memory                     some minutes on a slow disk; --sizes 100 1000 for less

A ledger is filled with hypotheses of the known mechanisms, twenty factors each, of which 15 % were refused; figures are
drawn by a seed, since only their number and their words matter here. Then the desk's own code recalls and writes the
context.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alphaloom.agents import SearchContext, Steer, Toolset
from alphaloom.agents.nodes.idea_agent import build_prompt_context
from alphaloom.agents.offline.mechanisms import load_mechanisms
from alphaloom.agents.records import RoundMemory
from alphaloom.evaluation import Budget, Evaluator, PanelContext, recall_facts
from alphaloom.evidence import Claim, EvidenceSettings, Proposal
from alphaloom.evidence.settings import WindowSettings
from alphaloom.ledger import Attempt, Evaluation, Ledger, Run
from alphaloom.market import SyntheticConfig, simulate

GOAL = "calm names after sector stress, monthly horizon, low turnover"
FIRST = "ts_mean(returns, 23) / ts_std(returns, 41)"
EACH, REFUSED = 20, 0.15


class Silence:
    """A journal that holds nothing, and a model and tools that nobody asks."""

    def read(self, _kind: str, _key: str) -> None:
        """Hold nothing."""

    def record(self, _kind: str, _key: str, _body: dict[str, Any]) -> None:
        """Keep nothing."""

    async def ask(self, _task: object) -> Any:
        """Answer nothing."""


def claim(name: str, mechanism: str, statement: str) -> Claim:
    """Return a hypothesis."""
    said = {"id": name, "mechanism": mechanism, "statement": statement, "direction": 1, "horizon_days": 5}
    return Claim.from_record({**said, "fields": ["returns", "volume"]})


def fill(evaluator: Evaluator, size: int, seed: int) -> Evaluator:
    """Write so many attempts into the run's record, and return the evaluator as a new process would see it."""
    draw, ledger, run = random.Random(seed), evaluator.ledger, evaluator.run
    evaluator.propose(Proposal(FIRST, claim("r00/h00", "first", "The first."), "first"))
    sheet = next(iter(evaluator.scores.values())).sheet
    for number in range(size):
        name = f"r{number // (5 * EACH) + 1:03d}/h{number // EACH % 5:02d}"
        if number % EACH == 0:
            mechanism = draw.choice(load_mechanisms())
            said = f"{mechanism.statement} Follow-up of f{draw.getrandbits(64):016x}, among the strongest on record."
            ledger.events.record(run, "claim", name, claim(name, mechanism.id, said).record())
        text = f"ts_mean(returns, {draw.randint(2, 250)}) + {draw.random():.6f} * rank(volume)"
        key, factor, t = f"{name}/c{number}", f"f{draw.getrandbits(64):016x}", draw.gauss(0.0, 1.5)
        if draw.random() < REFUSED:
            ledger.attempts.add(Attempt(run, key, name, text, None, "originality", "nearly a known factor"))
        else:
            ledger.attempts.add(Attempt(run, key, name, text, factor, "scored", ""))
            ledger.evaluations.add(Evaluation(run, factor, text, name, {**sheet, "t": t, "merit": abs(t)}))
    return Evaluator(
        evaluator.engine, evaluator.scorer, evaluator.windows, ledger, evaluator.settings, evaluator.budget, run
    )


def measured(size: int, seed: int, folder: Path) -> str:
    """Return one row: factors, characters of the whole context and of its record, and the CPU seconds of the recall."""
    panel = simulate(SyntheticConfig(seed=seed, days=420, names=60), []).panel
    windows = WindowSettings(search=0.5, selection=0.35, min_search_days=40, min_selection_days=40, min_sealed_days=40)
    with Ledger.open(folder, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as ledger:
        bench = PanelContext.set_up(panel, ledger, EvidenceSettings(windows=windows), "memory")
        ledger.runs.start(Run("run", {"panel": panel.digest, "last_day": str(panel.dates[-1])}, seed, "memory", "2026"))
        evaluator = fill(bench.evaluator("run", Budget(evaluations=2 * size, trials=1)), size, seed)
        began = time.process_time()
        facts = recall_facts(evaluator, 100, GOAL)
        took = time.process_time() - began
    silence = Silence()
    desk = SearchContext(silence, Toolset({}), silence, "run", seed, steer=Steer(goal=GOAL))
    body = build_prompt_context(desk, RoundMemory.parse(facts), 9, 5)
    whole, record = len(json.dumps(body)), len(json.dumps(body["record"]))
    return f"{size:>8,} {whole:>12,} {record:>12,} {took:>10.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    options.add_argument("--seed", type=int, default=3)
    given = options.parse_args(arguments)
    print(f"{'factors':>8} {'characters':>12} {'of record':>12} {'CPU s':>10}")
    for size in given.sizes:
        with tempfile.TemporaryDirectory() as folder:
            print(measured(size, given.seed, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
