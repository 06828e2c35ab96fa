"""What each agent holds, and what happens when it reaches for more."""

from __future__ import annotations

import asyncio

import pytest

from alphaloom.agents import Toolset
from alphaloom.agents.errors import AgentError
from alphaloom.agents.nodes import eval_agent, factor_agent, idea_agent

from .doubles import Fuse, Servers

HELD = {
    "idea": ("factors.recall_attempts", "market.search_fields", "evaluation.list_formulas", "news.search_news"),
    "factor": ("factors.check_factor", "factors.find_similar", "evaluation.choose_drafts", "evaluation.score_factor"),
    "eval": ("evaluation.get_budget", "evaluation.list_formulas", "evaluation.submit_to_gate"),
}


def test_each_agent_holds_these_tools_and_no_other() -> None:
    assert {
        "idea": idea_agent.IDEA_AGENT_TOOLS,
        "factor": factor_agent.FACTOR_AGENT_TOOLS,
        "eval": eval_agent.EVAL_AGENT_TOOLS,
    } == HELD


@pytest.mark.parametrize(
    ("agent", "tool"), [("idea", "evaluation.score_factor"), ("factor", "evaluation.submit_to_gate")]
)
def test_a_tool_that_an_agent_does_not_hold_is_refused_by_name(agent: str, tool: str) -> None:
    servers = Servers(Fuse())
    box = Toolset({"evaluation": servers}).select(agent, HELD[agent])
    with pytest.raises(AgentError, match=tool) as caught:
        asyncio.run(box.call(tool, {}))
    assert caught.value.code == "tool_refused"
    assert servers.calls == []
