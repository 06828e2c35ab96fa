"""The dependencies of the agents: models to ask, tools to call, a journal, and the context that bundles them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..router import Reply, Task
from .config import AgentsConfig, Steer
from .errors import AgentError
from .own_parts import Own, OwnAgent, find_agent

if TYPE_CHECKING:
    from .nodes.documents import Documents

T = TypeVar("T")

Json = dict[str, Any]
"""One JSON object, as tools and the journal exchange them."""

ProgressHook = Callable[[str, Json], None]
"""Receives an event and its small figures, and shows them to a person."""


class Asker(Protocol):
    """Answers a typed task with a validated reply."""

    async def ask(self, task: Task) -> Reply[Any]:
        """Return the reply, validated against the task's schema."""


class ToolSession(Protocol):
    """Reaches the tools of one MCP server."""

    async def call(self, name: str, arguments: Json) -> Json:
        """Return the tool's structured answer."""


class AgentJournal(Protocol):
    """The record of the agents' work; append-only, the first record under a kind and key stands."""

    def record(self, kind: str, key: str, body: Json) -> None:
        """Store the body, unless the kind and key are taken."""

    def read(self, kind: str, key: str) -> Json | None:
        """Return the body stored under the kind and key, or None."""


class DatabaseLink(Protocol):
    """A connection to a database server that is reopened when it was lost."""

    def repeated(self, deed: Callable[[Any], T]) -> T:
        """Run a function on the connection, and run it again if the connection is lost."""

    def close(self) -> None:
        """Close it."""


CheckpointPlace = Path | Callable[[], DatabaseLink]
"""Where a graph's state is stored: a file, or a function that opens a link to a server."""


@dataclass(frozen=True)
class Toolbox:
    """The tools that one agent holds; a call of any other raises an error."""

    agent: str
    held: tuple[str, ...]
    sessions: Mapping[str, ToolSession]

    async def call(self, tool: str, arguments: Json) -> Json:
        """Call a held tool, named `server.tool`."""
        if tool not in self.held:
            raise AgentError(
                f"the {self.agent} agent does not hold the tool {tool!r}",
                field="tool",
                got=tool,
                allowed=list(self.held),
                code="tool_refused",
                exit_code=1,
            )
        server, _, name = tool.partition(".")
        return await self.sessions[server].call(name, arguments)


@dataclass(frozen=True)
class Toolset:
    """Client sessions by server name: market, factors, evaluation, news."""

    sessions: Mapping[str, ToolSession]

    def select(self, agent: str, held: tuple[str, ...]) -> Toolbox:
        """Return the box with the tools that the agent holds."""
        return Toolbox(agent, held, self.sessions)


def ignore_progress(_event: str, _figures: Json) -> None:
    """Default progress hook: show nothing."""


def never_halt() -> bool:
    """Default `halted` hook: never halt."""
    return False


def never_end() -> str:
    """Default `ended` hook: no external stop reason."""
    return ""


@dataclass(frozen=True)
class SearchContext:
    """All dependencies of the graph.

    Attributes
    ----------
    horizon_days
        The main horizon of the evaluation, in trading days.
    halted
        Called between super-steps; if it returns True, the graph stops and can be resumed from that state.
    ended
        Returns an external reason to end the search, such as the clock; the graph then closes.
    most_hypotheses
        Largest number of new hypotheses of the whole campaign.
    documents
        The person's documents, if any.
    known_effects
        Published effects that live on search days: mechanism, name, formula, direction, t and counts.
    """

    asker: Asker
    tools: Toolset
    journal: AgentJournal
    run: str
    seed: int
    config: AgentsConfig = field(default_factory=AgentsConfig)
    horizon_days: int = 5
    progress: ProgressHook = ignore_progress
    halted: Callable[[], bool] = never_halt
    ended: Callable[[], str] = never_end
    most_hypotheses: int | None = None
    steer: Steer = field(default_factory=Steer)
    own: Own = field(default_factory=Own)
    documents: Documents | None = None
    known_effects: Sequence[Json] = ()

    @cached_property
    def guest(self) -> OwnAgent:
        """The person's own agent."""
        return find_agent(self.own.agent)

    def seed_for(self, key: str) -> int:
        """Return the seed of one piece of work: equal seed and key give an equal number."""
        return draw_work_seed(self.seed, key)

    async def record_once(self, kind: str, key: str, produce: Callable[[], Awaitable[Json]]) -> Json:
        """Return the journal's record under the kind and key; if there is none, produce and store it first."""
        body = self.journal.read(kind, key)
        if body is None:
            self.journal.record(kind, key, await produce())
            body = self.journal.read(kind, key)
        assert body is not None, "a journal must return what it was given"
        return body


def draw_work_seed(seed: int, key: str) -> int:
    """Return the seed of one piece of work of a run; it is in the request of each model call that answers it."""
    return int.from_bytes(sha256(f"{seed}/{key}".encode()).digest()[:4], "big") >> 1
