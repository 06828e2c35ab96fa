"""The campaigns whose questions are labelled: small ones that differ in market, seed, aim, settings and documents.

No campaign of the exam shares seed, aim or document with one of the training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alphaloom.campaign import Settings
from alphaloom.news import screen_text

__all__ = ["CAMPAIGNS", "Plan", "build_settings", "write_documents"]

ROOT = Path(__file__).resolve().parents[3]
PASSAGES: Mapping[str, tuple[Path, str]] = {
    "training": (ROOT / "router/classifier/training/attachments/attachments.jsonl", "passage"),
    "exam": (ROOT / "tests/router/classifier/exam/later/pastes.jsonl", "filing_or_article"),
}
"""By set: the file and the kind of the passages of filings and articles that its campaigns have as documents."""
DOCUMENTS, MIN_DOCUMENT_CHARS = 2, 400
"""Documents of a campaign, and the least length of one; shorter passages are joined."""


@dataclass(frozen=True)
class Plan:
    """One campaign: its seed, market (days, symbols), aim, changes of the agents' settings, and an agent with slips."""

    seed: int
    market: tuple[int, int]
    steer: Mapping[str, Any]
    agents: Mapping[str, Any]
    slips: bool = False


CAMPAIGNS: Mapping[str, Sequence[Plan]] = {
    "training": (
        Plan(11, (420, 60), {}, {"hypotheses": 3, "drafts": 2}),
        Plan(12, (440, 50), {"goal": "reversals after heavy trading"}, {}, slips=True),
        Plan(13, (460, 70), {"focus": ("momentum",)}, {"drafts": 2}),
        Plan(14, (480, 40), {"avoid": ("volatility",)}, {"hypotheses": 3, "candidates": 3, "drafts": 2}, slips=True),
        Plan(15, (420, 80), {"fields": ("open", "close", "volume", "returns")}, {"hypotheses": 3}),
        Plan(16, (500, 60), {"goal": "what investors overlook in quiet shares"}, {"survey_share": 0.0}, slips=True),
        Plan(17, (430, 60), {}, {"hypotheses": 3, "drafts": 2, "survey_share": 0.6, "steps": 0}),
        Plan(18, (450, 45), {"focus": ("liquidity",)}, {"memory": False}, slips=True),
        Plan(19, (470, 55), {"goal": "the week after large moves"}, {"islands": 1, "hypotheses": 4, "drafts": 2}),
    ),
    "exam": (
        Plan(101, (420, 60), {}, {"hypotheses": 3, "drafts": 2}),
        Plan(102, (435, 55), {"goal": "prices that move away from their usual range"}, {}, slips=True),
        Plan(103, (455, 75), {"focus": ("volatility",)}, {"candidates": 3}),
        Plan(
            104, (490, 45), {"avoid": ("liquidity",)}, {"hypotheses": 3, "drafts": 2, "survey_share": 0.0}, slips=True
        ),
        Plan(105, (425, 70), {"fields": ("high", "low", "close", "amount")}, {}),
        Plan(106, (510, 50), {"goal": "closing auctions and who must trade there"}, {}, slips=True),
        Plan(107, (440, 65), {}, {"hypotheses": 3, "drafts": 2, "survey_share": 0.5, "steps": 0}),
        Plan(108, (465, 40), {"focus": ("reversal",)}, {"memory": False}, slips=True),
        Plan(109, (450, 60), {"goal": "crowded positions that unwind"}, {"islands": 1}),
        Plan(110, (430, 50), {"avoid": ("reversal", "overreaction")}, {"redrafts": 1, "drafts": 2}, slips=True),
    ),
}  # fmt: skip  # a table
"""By set: the campaigns whose questions train the router, and those on which it is examined."""

AGENTS: Mapping[str, Any] = {
    "rounds": 1, "hypotheses": 2, "candidates": 2, "drafts": 1, "steps": 1, "repairs": 1, "min_search_t": 0,
    "unexplored": 8, "max_concurrency": 4, "node_timeout_seconds": 3600,
}  # fmt: skip  # a table


def build_settings(plan: Plan, documents: Sequence[Path]) -> Settings:
    """Return the settings of a campaign; the offline researcher answers every question of it."""
    days, names = plan.market
    own = {"agent": "bench.router.campaigns.slips:propose", "agent_hypotheses": 1} if plan.slips else {}
    return Settings.model_validate(
        {
            "name": f"labelled-{plan.seed}",
            "seed": plan.seed,
            "market": {"synthetic": {"days": days, "names": names}},
            "evidence": {"windows": {"min_selection_days": 60, "min_sealed_days": 60}},
            "agents": {**AGENTS, **plan.agents},
            "steer": {**plan.steer, **own},
            "context": {"documents": [str(path) for path in documents], "summaries": "model"},
            "budget": {"evaluations": 60, "trials": 2},
        }
    )


def write_documents(name: str, place: int, folder: Path) -> list[Path]:
    """Write the documents of the campaign at a place of a set, and return their paths."""
    texts = _read_passages(name)
    paths = []
    for number in range(DOCUMENTS):
        path = folder / f"text-{place}-{number}.txt"
        path.write_text(texts[(DOCUMENTS * place + number) % len(texts)], encoding="utf-8")
        paths.append(path)
    return paths


def _read_passages(name: str) -> list[str]:
    """Return the passages of a set in order, none that speaks to machines; those that are short are joined."""
    path, kind = PASSAGES[name]
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    passages = [max((row.get("text") or row["prompt"]).split("\n\n"), key=len) for row in rows if row["kind"] == kind]
    texts = [""]
    for passage in passages:
        if not screen_text(passage)[1]:
            texts[-1] = f"{texts[-1]}\n\n{passage}".strip()
            texts += [""] if len(texts[-1]) >= MIN_DOCUMENT_CHARS else []
    return texts[:-1]
