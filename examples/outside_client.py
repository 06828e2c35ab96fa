"""An MCP client from outside, from a question to a verdict: no model, no key, the synthetic market, about a minute.

python examples/outside_client.py > transcript.md

It starts `alphaloom serve mcp --all` as Claude Desktop would, asks "is there anything in the trading range of quiet
names?", and writes down everything that it says and hears. `examples/transcript.md` is what it wrote.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pprint
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

QUESTION = "Is there anything in the trading range of quiet names?"
QUIET = "rank(-ts_std(returns, 60))"
RANGE = "ts_mean((high - low) / close, 20)"
LONGEST = 1_600


class Talk:
    """A conversation with the servers that prints its transcript."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def say(self, text: str) -> None:
        """Print the client's thoughts."""
        print(f"\n{text}")

    async def ask(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; print the call and the answer, shortened if it is long."""
        result = await self._client.call_tool(tool, arguments)
        answer: dict[str, Any] = dict(result.structured_content or {})
        text = pprint.pformat(answer, width=130, compact=True, sort_dicts=False)
        cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... ({len(text):,} characters in all)"
        print(f"\n**{tool}** `{json.dumps(arguments, ensure_ascii=False)}`\n\n```text\n{cut}\n```")
        return answer


async def converse(talk: Talk) -> None:
    """Go from the question to a verdict."""
    talk.say(f"# {QUESTION}\n\nWritten by `python examples/outside_client.py`, a client without a model.")
    talk.say("Which fields say anything of a day's range, and over which days and names may I look?")
    await talk.ask("search_fields", {"query": "price of the day"})
    await talk.ask("describe_universe", {})

    talk.say("A first formula. The name of a field is misspelt.")
    await talk.ask("check_factor", {"text": "rank(ts_mean((hihg - low) / close, 20))"})
    talk.say("The hint says what was meant. The range of quiet names: each name's range, counted by how quiet it is.")
    text = f"rank({RANGE}) * {QUIET}"
    await talk.ask("check_factor", {"text": text})
    await talk.ask("explain_factor", {"text": text})
    await talk.ask("find_similar", {"text": text, "top": 2})
    await talk.ask("register_factor", {"text": text, "name": "range of quiet names", "note": QUESTION})

    talk.say("It is readable and new enough. What does search say, if quiet names with a wide range are to rise?")
    first = await scored(talk, text, "wide", "Quiet names with a wide range rise: news that few look at yet.")
    talk.say(f"{shown(first)} A range is wide or narrow for good; what changes is the range against its own past.")
    better = f"-rank({RANGE} / ts_mean((high - low) / close, 120)) * {QUIET}"
    second = await scored(talk, better, "narrow", "Quiet names whose range narrows rise: disagreement has ended.")
    talk.say(shown(second))
    best = max((first, second), key=lambda one: one["sheet"]["t"])

    talk.say("Where does the better one break, and how fast does it fade? Both are long work: jobs.")
    for tool in ("measure_decay", "stress_factor"):
        job = await talk.ask(tool, {"id": best["id"]})
        while (state := await talk.ask("get_job", {"job": job["job"], "wait_s": 20}))["status"] in (
            "waiting",
            "running",
        ):
            talk.say(f"It is {state['status']}.")

    talk.say("The person agrees to spend one trial. What is left to spend, before and after?")
    await talk.ask("get_budget", {})
    verdict = (await talk.ask("submit_to_gate", {"ids": [best["id"]], "key": "verdict"}))["verdicts"][0]
    await talk.ask("get_budget", {})
    talk.say(f"The verdict is *{verdict['verdict']}*: {'; '.join(verdict['reasons']) or 'nothing spoke against it'}.")


def shown(scored: dict[str, Any]) -> str:
    """Return the results on the search window in a line."""
    codes = ", ".join(weakness["code"] for weakness in scored["weaknesses"]) or "none"
    return f"RankIC {scored['sheet']['rank_ic']:+.4f}, t {scored['sheet']['t']:+.1f}; weaknesses: {codes}."


async def scored(talk: Talk, text: str, key: str, statement: str) -> dict[str, Any]:
    """Score a formula under a hypothesis; a refusal ends the conversation."""
    hypothesis = {
        "id": f"quiet-{key}",
        "mechanism": "range of quiet names",
        "direction": 1,
        "horizon_days": 5,
        "statement": statement,
        "fields": ["high", "low", "close", "returns"],
    }
    answer = await talk.ask("score_factor", {"text": text, "hypothesis": hypothesis, "key": key})
    if not answer["ok"]:
        raise SystemExit(f"refused at {answer['stage']}: {answer['errors']}")
    return answer


async def main() -> None:
    """Start the servers in a new workspace, or in a given one, and talk."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--workspace", type=Path, help="a fresh one by default")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as fresh:
        command = ["-m", "alphaloom", "serve", "mcp", "--all", "--workspace", str(arguments.workspace or fresh)]
        async with Client(StdioServerParameters(command=sys.executable, args=command)) as client:
            await converse(Talk(client))


if __name__ == "__main__":
    asyncio.run(main())
