"""The largest answers of all tools and resources, asked for as much as they give."""

from __future__ import annotations

import json
from typing import Any

from alphaloom.mcp_servers.answers import MAX_ANSWER_BYTES

SHOWN = 8
FORMULA = "rank(ts_skew(volume, {0})) * rank(ts_mean(returns, {0})) - ts_corr(close / open, volume, {0})"
CLAIM = {
    "id": "h1",
    "mechanism": "control",
    "statement": "a formula of the benchmark",
    "direction": 1,
    "horizon_days": 5,
    "fields": ["close", "open", "returns", "volume"],
}
DRAFTS = 120
NOTE = "why this formula is kept, at some length " * 24
GREEDY: dict[str, dict[str, Any]] = {
    "market.search_fields": {},
    "market.describe_universe": {},
    "market.get_calendar": {"limit": 500},
    "market.preview_panel": {"field": "close", "rows": 20},
    "market.get_history": {"field": "close"},
    "factors.check_factor": {"text": FORMULA.format(20)},
    "factors.explain_factor": {"text": FORMULA.format(20)},
    "factors.translate_factor": {"text": FORMULA.format(20), "source": "alphaloom", "target": "qlib"},
    "factors.find_similar": {"text": FORMULA.format(20), "top": 20},
    "factors.search_library": {"limit": 100},
    "factors.recall_attempts": {"limit": 100},
    "evaluation.list_formulas": {"which": "unexplored", "limit": 64},
    "evaluation.choose_drafts": {
        "texts": [FORMULA.format(window) for window in range(2, 514)],
        "hypothesis": CLAIM,
        "count": 64,
        "either": True,
    },
    "evaluation.get_budget": {},
    "news.search_news": {},
}
JOBS = ("stress_factor", "measure_decay")


async def largest(clients: dict[str, Any]) -> list[str]:
    """Return the largest answers with their bytes; `clients` by server, in memory."""
    sizes: dict[str, tuple[int, str]] = {}
    for window in range(2, 2 + DRAFTS):
        text = FORMULA.format(window)
        await clients["factors"].call_tool(
            "register_factor", {"text": text, "name": f"draft {window}", "note": NOTE[:1000]}
        )
    for window in range(20, 40):
        asked = {"text": FORMULA.format(window), "hypothesis": CLAIM, "key": f"k{window}", "description": NOTE[:1000]}
        scored = await clients["evaluation"].call_tool("score_factor", asked)
        sizes["evaluation.score_factor"] = _weight(scored)
    known = {"id": scored.structured_content.get("id", "")}
    sizes["factors.get_factor"] = _weight(await clients["factors"].call_tool("get_factor", known))
    for name, arguments in GREEDY.items():
        server, _, tool = name.partition(".")
        sizes[name] = _weight(await clients[server].call_tool(tool, arguments))
    for tool in JOBS:
        begun = (await clients["evaluation"].call_tool(tool, known)).structured_content
        answer = await _ended(clients["evaluation"], begun["job"])
        sizes[f"evaluation.get_job of {tool}"] = _weight(answer)
    order = sorted(sizes, key=lambda name: -sizes[name][0])
    lines = [f"{name}: {sizes[name][0]:,} bytes {sizes[name][1]}".rstrip() for name in order[:SHOWN]]
    worst = max(size for size, refused in sizes.values() if not refused)
    return [f"largest answers (text and links; none may have more than {MAX_ANSWER_BYTES:,}): {worst:,}", *lines]


async def _ended(client: Any, job: str) -> Any:
    while True:
        answer = await client.call_tool("get_job", {"job": job, "wait_s": 20})
        if answer.structured_content.get("status") not in {"waiting", "running"}:
            return answer


def _weight(answer: Any) -> tuple[int, str]:
    """Return the bytes of an answer as a client's model reads it, and whether it was refused."""
    size = sum(len(json.dumps(part.model_dump(mode="json", exclude_none=True))) for part in answer.content[1:])
    return size + len(
        answer.content[0].text.encode()
    ), f"(refused: {answer.structured_content['code']})" if answer.is_error else ""
