"""Run campaigns with the offline researcher, put each question to a small model too, and label it by the outcomes.

python -m bench.router.campaigns.label --server http://127.0.0.1:8011/v1 --model hosted_vllm/smollm2 --set training FILE

The small model is asked through the router, as a campaign with two tiers asks it: with the schema, the grammar and one
try. After a first line that names the pair of models, a line of the file is one question: what the router knows of
it, how many parts of each reply are of use, and tokens. `--said FOLDER` keeps the small model's replies.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alphaloom.agents import OFFLINE_MODEL_NAME
from alphaloom.agents.offline import OfflineResearcher
from alphaloom.campaign import Campaign
from alphaloom.evaluation import Evaluator
from alphaloom.ledger import Ledger, Run
from alphaloom.router import Reply, Router, RouterConfig, Task
from alphaloom.router.policy import Decider
from bench.router.campaigns.judge import Judge
from bench.router.campaigns.settings import CAMPAIGNS, Plan, build_settings, write_documents

__all__ = ["main"]

SMALL_RUN = "small"
MOST_TOKENS = 1_500
"""Tokens of a small model's reply, over three times the longest of the researcher's: one that goes on is cut off."""


class SearchEnded(Exception):
    """Ends a campaign after its search: closing it asks no question."""


@dataclass(frozen=True)
class Labels:
    """Asks the small model, and writes the lines."""

    small: Router
    decider: Decider
    file: Path
    seed: int
    said: Path | None

    async def label(self, judge: Judge, task: Task, reply: Reply[Any]) -> None:
        """Ask the small model the same, and write one line."""
        answer = await self.small.ask(replace(task, run=SMALL_RUN, max_tokens=MOST_TOKENS))
        alone = answer.tier == "local"  # else its replies did not fit, and the researcher answered
        if not alone and not answer.repairs:
            raise RuntimeError("the small model did not answer, which is no label")
        signals = self.decider.route(task)[0].signals
        line = {
            "campaign": self.seed,
            "role": task.role,
            "intent": task.intent,
            "tokens": signals["tokens"],
            "depth": signals["schema_depth"],
            "refused": task.refused,
            "researcher": judge.count_useful(task, reply.value, reply.value),
            "small": judge.count_useful(task, answer.value, reply.value) if alone else 0,
            "fits": alone,
            "frontier_tokens": [reply.tokens_in, reply.tokens_out],
            "small_tokens": [answer.tokens_in, answer.tokens_out],
        }
        _append(self.file, line)
        if self.said is not None:
            _append(self.said / self.file.name, line | {"said": answer.value.model_dump(mode="json")})
        print({name: line[name] for name in ("campaign", "role", "intent", "researcher", "small", "fits")}, flush=True)


def _append(file: Path, line: dict[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


@dataclass(frozen=True)
class _Both:
    """Asks the campaign's own model, then has the question labelled."""

    router: Router
    labels: Labels
    judge: Judge

    async def ask(self, task: Task) -> Reply[Any]:
        reply = await self.router.ask(task)
        await self.labels.label(self.judge, task, reply)
        return reply

    async def close(self) -> None:
        await self.router.close()


@dataclass(frozen=True)
class LabelledCampaign(Campaign):
    """A campaign whose questions are labelled; it ends after its search."""

    labels: Any = None

    async def _research(self, evaluator: Evaluator, own: Any, router: Any, reporter: Any, known_effects: Any) -> Any:
        both: Any = _Both(router, self.labels, Judge(evaluator, self.settings))
        try:
            await super()._research(evaluator, own, both, reporter, known_effects)
        finally:
            await self.labels.small.close()
        raise SearchEnded


def main(given: Sequence[str]) -> int:
    """Label the questions of the campaigns of a set."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--server", required=True)
    options.add_argument("--model", required=True)
    options.add_argument("--set", choices=sorted(CAMPAIGNS), required=True)
    options.add_argument("--only", type=int, nargs="*", help="seeds of campaigns")
    options.add_argument("--said", type=Path)
    options.add_argument("file", type=Path)
    asked = options.parse_args(given)
    if not asked.file.exists():
        _append(asked.file, {"small": asked.model.partition("/")[2], "other": OFFLINE_MODEL_NAME})
    for place, plan in enumerate(CAMPAIGNS[asked.set]):
        if asked.only and plan.seed not in asked.only:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            try:
                _label_campaign(plan, asked, folder, write_documents(asked.set, place, folder))
            except SearchEnded:
                print(f"campaign {plan.seed} is labelled", flush=True)
    return 0


def _label_campaign(plan: Plan, asked: argparse.Namespace, folder: Path, documents: Sequence[Path]) -> None:
    models = {
        "small": {"model": asked.model, "api_base": asked.server, "place": "local"},
        "researcher": {"model": OFFLINE_MODEL_NAME, "place": "local", "tier": "frontier"},
    }
    config = RouterConfig.model_validate(
        {
            "models": models,
            "roles": dict.fromkeys(("idea", "factor", "eval", "report"), "local"),
            "routing": {"local_tries": 1},
            "timeout_seconds": 3600,
            "retries": 0,
            "budget": {"calls": 100_000, "tokens": 10**12},
        }
    )
    with Ledger.open(folder / "small", clock=lambda: datetime.now(UTC)) as ledger:
        ledger.runs.start(Run(SMALL_RUN, {}, 1, "data", "2026-01-02"))
        small = Router(config, ledger, providers={"offline": OfflineResearcher}, environment={})
        labels = Labels(small, Decider(config), asked.file, plan.seed, asked.said)
        LabelledCampaign(build_settings(plan, documents), folder / "campaign", labels=labels).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
