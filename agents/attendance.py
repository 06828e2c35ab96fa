"""Report what each agent does while it happens: its questions to models and its tool calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..router import Reply, Task
from .search_context import Asker, Json, ToolSession, Toolset

__all__ = ["Attendance"]

ONGOING_PHRASES = {
    "hypotheses": "thinks of hypotheses",
    "formulas": "writes formulas",
    "repair": "repairs refused formulas",
    "critique": "criticises formulas",
    "summary": "summarises documents",
}
DONE_PHRASES = {
    "hypotheses": "proposed hypotheses",
    "formulas": "wrote formulas",
    "repair": "repaired formulas",
    "critique": "criticised formulas",
    "summary": "summarised documents",
}
TOOL_PHRASES = {
    "recall_attempts": ("idea", "reads the record"),
    "search_news": ("idea", "reads the news"),
    "score_factor": ("eval", "scores {key} on search"),
    "submit_to_gate": ("eval", "puts factors before the gate"),
}
"""By tool: the agent that a call is attributed to, and the phrase that describes it."""


@dataclass
class Attendance:
    """Record what each agent does now or did last, by role; call `tell` at every change."""

    tell: Callable[[], None]
    doing: dict[str, str] = field(default_factory=dict)
    _open: Counter[tuple[str, str]] = field(default_factory=Counter)

    def asker(self, asker: Asker) -> Asker:
        """Return the asker, wrapped so that its questions are reported."""
        return _ObservedAsker(asker, self)

    def tools(self, tools: Toolset) -> Toolset:
        """Return the tools, wrapped so that their calls are reported."""
        sessions: Mapping[str, ToolSession] = {
            name: _ObservedSession(session, self) for name, session in tools.sessions.items()
        }
        return Toolset(sessions)

    def asks(self, role: str, intent: str, change: int) -> None:
        """Record that a question begins (`change` 1) or ends (-1)."""
        self._open[role, intent] += change
        under_way = self._open[role, intent]
        suffix = f" for {under_way} hypotheses at once" if under_way > 1 else ""
        self.doing[role] = (
            f"{ONGOING_PHRASES.get(intent, intent)}{suffix}"
            if under_way
            else DONE_PHRASES.get(intent, f"{intent}: done")
        )
        self.tell()

    def calls(self, tool: str, arguments: Json) -> None:
        """Record that a tool is called."""
        if tool in TOOL_PHRASES:
            agent, words = TOOL_PHRASES[tool]
            self.doing[agent] = words.format(key=arguments.get("key", ""))
            self.tell()


@dataclass(frozen=True)
class _ObservedAsker:
    asker: Asker
    attendance: Attendance

    async def ask(self, task: Task) -> Reply[Any]:
        self.attendance.asks(task.role, task.intent, 1)
        try:
            return await self.asker.ask(task)
        finally:
            self.attendance.asks(task.role, task.intent, -1)


@dataclass(frozen=True)
class _ObservedSession:
    session: ToolSession
    attendance: Attendance

    async def call(self, name: str, arguments: Json) -> Json:
        self.attendance.calls(name, arguments)
        return await self.session.call(name, arguments)
