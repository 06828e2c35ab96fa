"""An agent of your own beside the Idea agent: plain Python, no model, no key. It runs offline in about a minute.

python examples/own_agent.py

In a campaign file the same agent is `steer: {agent: own_agent.py:seasons}`; here the line is given on top of a file.
The agent proposes from an idea that no list of mechanisms holds: which day of a name's own rhythm it is. What it
returns is checked and recorded like a model's reply, its formulas meet the same gate, and an error of it costs its
share of one round.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alphaloom import Campaign
from alphaloom.agents import View

HERE = Path(__file__).parent
WHO = {
    5: "Sellers of weekly options hedge on the same weekday, and push the same names the same way again.",
    21: "Contributions to pension plans arrive once a month and are invested at once, whatever the price.",
    63: "Index committees meet every quarter; what they move is moved again by those who follow late.",
}
"""By lag in days: why returns should repeat. With different numbers only, two hypotheses would count as one."""


async def seasons(view: View) -> Mapping[str, Any]:
    """Return one hypothesis a round: a stock's return repeats after a fixed number of days."""
    draw = random.Random(view.seed)  # never from the clock: a resumed run must draw the same
    statements = " ".join(str(row["statement"]) for row in view.record["hypotheses"])
    rhythm = next((days for days, words in WHO.items() if words not in statements), None)
    if rhythm is None or "returns" not in view.fields:
        return {"hypotheses": []}
    window = draw.choice((2, 3, 4))
    return {
        "hypotheses": [
            {
                "mechanism": f"rhythm_of_{rhythm}_days",
                "statement": WHO[rhythm],
                "who_is_on_the_other_side": "Those whose calendar is known and who trade on it all the same.",
                "why_it_persists": "The calendar is written into their mandates.",
                "direction": 1,
                "horizon_days": view.horizon_days,
                "fields": ["returns"],
                "regime": "any",
                "refuted_by": "no formula of it reaches a t of 3 on the search window",
                "candidates": [
                    {"text": f"delay(ts_mean(returns, {window}), {rhythm - window})"},
                    {"text": f"delay(ts_mean(returns, {window}), {rhythm - window}) - ts_mean(returns, {rhythm})"},
                ],
            }
        ]
    }


def main() -> None:
    """Run a small campaign with the agent and print the scores of its hypotheses."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--workspace", type=Path, default=Path(".alphaloom/own-agent"))
    options.add_argument("--panel", type=Path, help="tidy Parquet or CSV; a small synthetic market by default")
    arguments = options.parse_args()

    settings = [f"steer.agent={Path(__file__).resolve()}:seasons", "steer.agent_hypotheses=1", "budget.evaluations=60"]
    settings += ["agents.rounds=3", "agents.hypotheses=3", "agents.steps=1"]
    settings += (
        [] if arguments.panel else ["market.synthetic.days=900", "market.synthetic.names=120", "market.derive={}"]
    )
    campaign = Campaign.from_yaml(
        HERE / "us_daily.yaml", panel=arguments.panel, workspace=arguments.workspace, overrides=settings
    )
    record = campaign.run().record

    lists = ("accepted", "proven", "watchlist", "rejected", "members", "untested")
    own = [entry for name in lists for entry in record[name]]
    own = [entry for entry in own if entry["hypothesis"].get("source") == "own agent"]
    for entry in own:
        t = entry["metrics"]["search"]["t"]
        print(f"{entry['hypothesis']['id']}  t {t:6.2f}  {entry['text']}")
    print(f"{len(own)} factors of your agent were scored, of {record['evaluations']}")


if __name__ == "__main__":
    main()
