"""From a question to a verdict, as a client goes that has read nothing but what the servers say; `steps.mjs` in Python.

It is run by other libraries in environments of their own: nothing of Alphaloom is imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

QUESTION = "shape of the day's range"
MISTAKEN = "rank(ts_kurt(hig / low, 30))"


@dataclass(frozen=True)
class Answer:
    """What a client was given, whatever its library calls it."""

    text: str
    structured: Mapping[str, Any]
    refused: bool


Call = Callable[[str, str, dict[str, Any]], Awaitable[Answer]]


def mended(text: str, error: Mapping[str, str]) -> str:
    """Return the formula with the word that a refusal calls unknown replaced by the one that its hint names."""
    wrong = re.search(r"unknown \w+ '(\w+)'", error["message"])
    right = re.search(r"Did you mean (\w+)\?", error["hint"])
    if not (wrong and right):
        raise ValueError(error)
    return re.sub(rf"\b{wrong[1]}\b", right[1], text)


async def question_to_verdict(call: Call) -> dict[str, Any]:
    """Go all the way.

    What differs from run to run (handles, times) is left out, so that two clients' answers can be compared.
    """

    async def sound(server: str, tool: str, **told: Any) -> dict[str, Any]:
        answer = await call(server, tool, told)
        assert not answer.refused, (tool, answer.structured)
        body: dict[str, Any] = json.loads(answer.text)
        assert body == answer.structured, tool
        return body

    fields = (await sound("market", "search_fields", query="price"))["fields"]
    refused = await sound("factors", "check_factor", text=MISTAKEN)
    text = mended(MISTAKEN, refused["errors"][0])
    checked = await sound("factors", "check_factor", text=text)
    similar = (await sound("factors", "find_similar", text=text))["similar"]
    draft = await sound("factors", "register_factor", text=text, name=QUESTION)
    hypothesis = {
        "id": "h1",
        "mechanism": "range",
        "statement": QUESTION,
        "direction": 1,
        "horizon_days": 5,
        "fields": ["high", "low"],
    }
    scored = await sound("evaluation", "score_factor", text=text, hypothesis=hypothesis, key="scored")
    job = await sound("evaluation", "stress_factor", id=scored["id"])
    while job["status"] in ("waiting", "running"):
        job = await sound("evaluation", "get_job", job=job["job"], wait_s=20)
    gate = await sound("evaluation", "submit_to_gate", ids=[scored["id"]], key="submitted")
    wrong = await call("evaluation", "submit_to_gate", {"key": "submitted"})
    return {
        "fields": [field["name"] for field in fields],
        "hint": refused["errors"][0]["hint"],
        "text": text,
        "checked": checked,
        "similar": similar,
        "draft": draft["id"],
        "scored": scored,
        "job": job,
        "verdicts": gate["verdicts"],
        "refused": {"isError": wrong.refused, "code": wrong.structured["code"], "field": wrong.structured["field"]},
    }
