"""An evaluation service, and client sessions on all three servers, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from alphaloom.evaluation import Budget, Evaluator
from alphaloom.ledger import Ledger
from alphaloom.mcp_servers import Session

from ..evidence.lab import SMALL, Lab, market, read
from .opened import opened_to

Answer = TypeVar("Answer")
Ask = Callable[[dict[str, Session]], Awaitable[Answer]]
Talk = Callable[[Ask[Any]], Any]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with read(tmp_path / "workspace") as opened:
        yield opened


@pytest.fixture
def evaluator(ledger: Ledger) -> Evaluator:
    return Lab.open(ledger, "run", market(), SMALL, Budget(evaluations=8, trials=2)).evaluator


@pytest.fixture
def talk(evaluator: Evaluator) -> Talk:
    """Return what opens the sessions, lets a coroutine use them, and closes them."""

    def converse(ask: Ask[Any]) -> Any:
        async def opened() -> Any:
            async with opened_to(evaluator) as sessions:
                return await ask(sessions)

        return asyncio.run(opened())

    return converse


@pytest.fixture
def call(talk: Talk) -> Callable[..., dict[str, Any]]:
    """Return what calls one tool, `server.tool`, and gives its answer."""

    def ask(name: str, **arguments: Any) -> dict[str, Any]:
        server, _, tool = name.partition(".")
        answer: dict[str, Any] = talk(lambda sessions: sessions[server].call(tool, arguments))
        return answer

    return ask


@pytest.fixture
def refused(talk: Talk) -> Callable[..., dict[str, Any]]:
    """Return what calls one tool that must refuse, and gives the refusal as it stands on the wire."""

    def ask(name: str, **arguments: Any) -> dict[str, Any]:
        server, _, tool = name.partition(".")
        result = talk(lambda sessions: sessions[server].client.call_tool(tool, arguments))
        assert result.is_error
        said: dict[str, Any] = result.structured_content
        return said

    return ask
