"""What the agents are handed: a model to ask, tools to call, a journal to write, and the desk that bundles them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
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
"""Told what happened and its small figures; shows them to a person."""


class Asker(Protocol):
    """Answers a typed task with a validated reply."""

    async def ask(self, task: Task) -> Reply[Any]:
        """Return the reply, validated against the task's schema."""


class ToolSession(Protocol):
    """Reaches the tools of one MCP server."""

    async def call(self, name: str, arguments: Json) -> Json:
        """Return the tool's structured answer."""


class AgentJournal(Protocol):
    """Keeps what the agents thought; append-only, the first record under a kind and key stands."""

    def record(self, kind: str, key: str, body: Json) -> None:
        """Keep the body, unless the kind and key are taken."""

    def read(self, kind: str, key: str) -> Json | None:
        """Return the body kept under the kind and key."""


class DatabaseLink(Protocol):
    """A connection to a database server, opened again when it was lost."""

    def repeated(self, deed: Callable[[Any], T]) -> T:
        """Do something with the connection, again if it is lost on the way."""

    def close(self) -> None:
        """Close it."""


CheckpointPlace = Path | Callable[[], DatabaseLink]
"""Where a graph's state is kept: a file, or what opens a link to a server."""


@dataclass(frozen=True)
class Toolbox:
    """The tools that one agent holds; anything else raises."""

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
    """Show nothing."""


def never_halt() -> bool:
    """Go on."""
    return False


def never_end() -> str:
    """Name nothing that ends the search from outside."""
    return ""


@dataclass(frozen=True)
class SearchContext:
    """All that the graph works with; the graph reaches for nothing else.

    `horizon_days` is the main horizon of the evaluation, in trading days. `halted` is asked between super-steps: the graph
    then leaves its state as it stands, to be gone on with later. `ended` names what ends the search from outside, such as
    the clock; the graph then closes. `most_hypotheses` bounds the new hypotheses of the whole campaign; `documents`
    are the person's, where there are any.
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

    @cached_property
    def guest(self) -> OwnAgent:
        """Return the person's own agent."""
        return find_agent(self.own.agent)

    def seed_for(self, key: str) -> int:
        """Return the seed of one piece of work: equal seed and key, equal number."""
        return int.from_bytes(sha256(f"{self.seed}/{key}".encode()).digest()[:4], "big") >> 1

    async def record_once(self, kind: str, key: str, produce: Callable[[], Awaitable[Json]]) -> Json:
        """Return what the journal holds under the kind and key; produce and keep it when it holds nothing."""
        kept = self.journal.read(kind, key)
        if kept is None:
            self.journal.record(kind, key, await produce())
            kept = self.journal.read(kind, key)
        assert kept is not None, "a journal must return what it was given"
        return kept
