"""A router on a fresh ledger with a scripted model; no test of this room has a network."""

import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from alphaloom.ledger import Ledger, Run
from alphaloom.router import Message, Router, RouterConfig, Task
from alphaloom.router.timing import Timing

from .scripted import ScriptedModel, ScriptedReply


class Idea(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    direction: int


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a test of the router reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "workspace", clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        for run in ("one", "two"):
            ledger.runs.start(Run(run, {}, 1, "data", "2026-01-02"))
        yield ledger


@pytest.fixture
def double() -> ScriptedModel:
    return ScriptedModel([ScriptedReply('{"text": "reversal", "direction": -1}')])


@pytest.fixture
def task() -> Callable[..., Task]:
    """Return a maker of tasks."""

    def make(text: str = "propose", **changes: Any) -> Task:
        fields: dict[str, Any] = {
            "role": "factor",
            "intent": "new",
            "messages": (Message("system", "You are."), Message("user", text)),
            "schema": Idea,
            "prompt": "p" * 64,
            "run": "one",
            "seed": 7,
        }
        return Task(**(fields | changes))

    return make


@pytest.fixture
def build(ledger: Ledger, double: ScriptedModel) -> Callable[..., Router]:
    """Return a maker of routers on the test's ledger and double."""

    def make(environment: dict[str, str] | None = None, timing: Timing | None = None, **config: Any) -> Router:
        small = {"model": "double/small", "place": "local", "input_cost_per_mtok": 1, "output_cost_per_mtok": 10}
        config = {"models": {"small": small}, "roles": {"idea": "frontier", "factor": "local"}} | config
        providers = {"double": lambda: double}
        settings = RouterConfig.model_validate(config)
        return Router(settings, ledger, providers=providers, environment=environment or {}, timing=timing)

    return make
