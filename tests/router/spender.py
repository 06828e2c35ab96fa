"""A process that asks many things at once of a model that takes its time, and says what came of it.

python spender.py ROOT WORKSPACE ADDRESS RUN NUMBERS BUDGET SECONDS

NUMBERS is a JSON list of the numbers of its tasks, BUDGET a JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, sys.argv[1])

from pydantic import BaseModel

from alphaloom.ledger import Ledger, Run
from alphaloom.router import BudgetEnded, Completion, Message, Router, RouterConfig, Task

PRICE = 1e3
"""US dollars for a million tokens out: 1,000 tokens cost 1 USD."""
WORST = 0.3


class Said(BaseModel):
    text: str


class Slow:
    """A model that takes its time, and costs between nothing and its worst, by the prompt."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def complete(self, _model: str, messages: Any, _parameters: Any) -> Completion:
        number = int(messages[-1]["content"].split()[-1])
        print("sent", number, flush=True)
        await asyncio.sleep(self.seconds * (1 + number % 7))
        out = number * 37 % 301
        return Completion('{"text": "x"}', usage={"prompt_tokens": 0, "completion_tokens": out})


def router(ledger: Ledger, budget: dict[str, Any], seconds: float) -> Router:
    model = {"model": "slow/x", "place": "local", "input_cost_per_mtok": 0, "output_cost_per_mtok": PRICE}
    config = RouterConfig.model_validate({"models": {"x": model}, "budget": budget})
    return Router(config, ledger, providers={"slow": lambda: Slow(seconds)})


def task(run: str, number: int) -> Task:
    says = (Message("user", f"{run} {number}"),)
    return Task(
        role="idea", intent="new", messages=says, schema=Said, prompt="p", run=run, seed=1,
        max_tokens=int(WORST * 1e6 / PRICE), tenant="desk",
    )  # fmt: skip  # a table


def ledger(workspace: str, address: str = "", *runs: str) -> Ledger:
    opened = Ledger.open(Path(workspace), clock=lambda: datetime(2026, 1, 2, tzinfo=UTC), address=address)
    for run in runs:
        opened.runs.start(Run(run, {}, 1, "data", "2026"))
    return opened


async def main(workspace: str, address: str, run: str, numbers: str, budget: str, seconds: str) -> None:
    with ledger(workspace, address, run) as kept:
        asked = router(kept, json.loads(budget), float(seconds))
        tasks = [asked.ask(task(run, number)) for number in json.loads(numbers)]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await asked.close()
    ended = [outcome for outcome in outcomes if isinstance(outcome, BudgetEnded)]
    other = [repr(outcome) for outcome in outcomes if isinstance(outcome, Exception) and outcome not in ended]
    print(json.dumps({"answered": len(outcomes) - len(ended) - len(other), "ended": len(ended), "other": other[:3]}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[2:]))
