"""Drafts that an agent changes before any is scored: none is lost where nothing can be expected of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from alphaloom.agents.nodes.factor_agent import Drafting
from alphaloom.agents.records import DraftBody

CODE = "def factor(panel):\n    return panel['close']\n"


class Forecaster:
    """Chooses the first formulas that it can read, and says the same of each."""

    async def call(self, _tool: str, asked: dict[str, Any]) -> dict[str, Any]:
        readable = [place for place, text in enumerate(asked["texts"]) if "(" in text and not text.startswith("def")]
        forecasts = [
            {"beside": 0.01, "known": 0.5} if place in readable else None for place in range(len(asked["texts"]))
        ]
        return {"forecasts": forecasts, "chosen": readable[: asked["count"]], "turned": []}


def redrafted(texts: Sequence[str], count: int, times: int = 2) -> tuple[list[str], list[list[str]]]:
    asked: list[list[str]] = []

    async def ask(number: int, best: Sequence[DraftBody]) -> list[DraftBody]:
        asked.append([row["text"] for row in best])
        assert all(row["rank_ic"] == 0.01 for row in best)
        return [{"text": f"rank({row['text']})"} for row in best[:number]]

    drafting = Drafting(Forecaster(), {}, "", either=False)  # type: ignore[arg-type]
    drafts = asyncio.run(drafting.redraft([{"text": text} for text in texts], count, times, ask))
    assert all(draft.keys() == {"text"} for draft in drafts), "what is expected is told anew each time"
    return [draft["text"] for draft in drafts], asked


def test_changes_join_the_drafts_and_code_stays() -> None:
    drafts, asked = redrafted(["log(open)", CODE, "abs(close)", "close"], 2)
    assert asked == [["log(open)", "abs(close)"], ["rank(log(open))", "log(open)", "abs(close)"]]
    assert drafts[:2] == ["rank(rank(log(open)))", "rank(log(open))"]
    assert CODE in drafts


def test_where_nothing_promises_anything_all_drafts_stay_and_nobody_is_asked() -> None:
    texts = [CODE, "close", "open", "?"]
    assert redrafted(texts, 2) == (texts, [])


def test_few_drafts_are_scored_as_they_are() -> None:
    assert redrafted(["log(open)", "abs(close)"], 2) == (["log(open)", "abs(close)"], [])
