"""The factors server: the language, and what is already known in it."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server import MCPServer
from pydantic import Field

from ..evidence import Evaluator, nearest, recall_facts, tidy
from ..factors import parse
from ..factors.facts import checked, explained
from ..factors.python import LONGEST_CODE
from .access import Scope
from .answers import tool
from .entry import Entry
from .market import READ_ONLY
from .server import ToolServer

Text = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_CODE,
        description="a formula, e.g. rank(ts_std(returns, 30)) * -1; or Python code that defines factor(panel)",
    ),
]
Dialect = Annotated[
    str,
    Field(description="the language of the formula: alphaloom, worldquant, qlib, alphaagent or alphagen"),
]


SCOPES = dict.fromkeys(("check_factor", "explain_factor", "find_similar", "recall"), Scope.FACTOR_READ)
"""What each tool asks of a caller."""


def factors_server(evaluator: Evaluator, entry: Entry | None = None) -> MCPServer:
    """Return the factors server of one panel."""
    said = "Check, explain and compare formulas; recall what was tried."
    server = ToolServer("alphaloom-factors", instructions=said, entry=entry, scopes=SCOPES)

    @server.tool(annotations=READ_ONLY)
    @tool
    def check_factor(text: Text, dialect: Dialect = "alphaloom") -> dict[str, Any]:
        """Parse a formula: its id, canonical form, unit and warm-up, or everything that is wrong with it and where."""
        return _permitted(evaluator, checked(text, fields=tuple(evaluator.panel.fields), dialect=dialect))

    @server.tool(annotations=READ_ONLY)
    @tool
    def explain_factor(text: Text, dialect: Dialect = "alphaloom") -> dict[str, Any]:
        """Say a formula in plain words, with its unit, the days and fields that it reads, its operators and its cost."""
        return explained(parse(text, fields=tuple(evaluator.panel.fields), dialect=dialect))

    @server.tool(annotations=READ_ONLY)
    @tool
    def find_similar(text: Text, top: Annotated[int, Field(ge=1, le=20)] = 5) -> dict[str, Any]:
        """Return the known formulas (library and published) that share the largest subtree with this one."""
        found = nearest(evaluator.read(text), evaluator.known(), top)
        rows = [
            {"name": like.known.name, "where": like.known.where, "ratio": tidy(like.ratio), "shared": like.shared}
            for like in found
        ]
        return {"similar": rows, "most_allowed": evaluator.settings.max_similarity}

    @server.tool(annotations=READ_ONLY)
    @tool
    def recall(
        limit: Annotated[int, Field(ge=1, le=100)] = 30,
        query: Annotated[str, Field(max_length=4_000, description="words of what hypotheses should be about")] = "",
    ) -> dict[str, Any]:
        """Return what was tried and how it went on the search window, with the operators and fields there are."""
        return recall_facts(evaluator, limit, query)

    return server


def _permitted(evaluator: Evaluator, found: dict[str, Any]) -> dict[str, Any]:
    """Refuse also what reads a field that this campaign does not use."""
    if not found["ok"]:
        return found
    read = evaluator.read(found["text"], found["dialect"]).fields
    strange = evaluator.mandate.strange(read, evaluator.panel.groups)
    errors = [{"at": None, "message": said, "hint": "", "stage": "mandate"} for said in strange]
    return found | ({"ok": False, "errors": errors} if errors else {})
