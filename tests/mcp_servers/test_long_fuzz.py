"""For minutes, whatever is asked of all servers, in memory: plain words, nothing of later days, nothing half-written.

`make mcp-endurance` runs it; MCP_FUZZ_SECONDS says how long, ten minutes together with what is asked over HTTP.
"""

from __future__ import annotations

import base64
import io
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import strategies as st
from mcp import MCPError

from alphaloom.evaluation import Budget, Evaluator
from alphaloom.market import Panel
from alphaloom.mcp_servers import Session
from alphaloom.mcp_servers.served_caller import ServedCaller

from ..evidence.lab import SMALL, Lab, market, read
from .asking import Request, repeat, requests, seconds
from .opened import opened_to, served_to
from .test_fuzz import JUNK, calls, check, half_written, later, plain

SECONDS = seconds("MCP_FUZZ_SECONDS", 600)
PARTS = {"calls": 0.4, "twins": 0.3}
"""Of the time; the rest is for HTTP."""
OWN = ("handle", "uri", "parts", "expires")
"""What is told of a file that hangs on the folder's key and the time."""


@contextmanager
def served_on(folder: Path, panel: Panel) -> Iterator[tuple[ServedCaller, list[str]]]:
    with read(folder) as ledger:
        lab = Lab.open(ledger, "run", panel, SMALL, Budget(evaluations=5_000, trials=100))
        ids = [lab.scored(text) for text in JUNK]
        served = served_to(lab.evaluator)
        yield served, ids
        served.jobs.close()


@dataclass
class Talk:
    """Sessions on all servers of a caller, kept open."""

    served: ServedCaller
    sessions: dict[str, Session]
    portal: BlockingPortal
    patient: bool = False
    """Whether the end of a job is waited for, since how far it is hangs on the machine."""

    def tools(self) -> dict[str, tuple[str, ...]]:
        """Return every tool of every server with its arguments: none is left out because nobody thought of it."""
        listed = {name: self.portal.call(each.client.list_tools).tools for name, each in self.sessions.items()}
        return {
            f"{name}.{tool.name}": tuple(tool.input_schema.get("properties", {}))
            for name, tools in listed.items()
            for tool in tools
        }

    def ask(self, said: list[Any]) -> list[Any]:
        """Return answers and refusals in order; an item is a server with a request, or a tool with arguments."""
        return [self.portal.call(self._asked, name, what) for name, what in said]

    async def _asked(self, name: str, what: Any) -> Any:
        server, _, tool = name.partition(".")
        method, given = what if isinstance(what, tuple) else ("call_tool", {"name": tool, "arguments": what})
        client = self.sessions[server].client
        try:
            answer = await getattr(client, method)(**given)
            while self.patient and unfinished(answer):
                answer = await client.call_tool("get_job", {"job": answer.structured_content["job"], "wait_s": 20})
            return answer
        except (MCPError, UnicodeEncodeError) as error:  # half a character cannot be sent
            return error


@contextmanager
def talking(served: ServedCaller, *, patient: bool = False) -> Iterator[Talk]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened_to(served)) as sessions:
        yield Talk(served, sessions, portal, patient)


def check_other(answer: Any, request: tuple[str, Request], evaluator: Evaluator) -> str:
    """See that what is no tool's answer is told plainly and of the search window; return what came of it."""
    if isinstance(answer, UnicodeEncodeError):
        return "not sent"
    text = str(answer.error.model_dump()) if isinstance(answer, MCPError) else answer.model_dump_json()
    plain(text, evaluator, request)
    if isinstance(answer, MCPError):
        assert answer.error.message, request
        return "refused"
    for part in getattr(answer, "contents", ()):
        if blob := getattr(part, "blob", None):
            last = pq.read_table(io.BytesIO(base64.b64decode(blob)))["date"][-1].as_py()
            assert np.datetime64(last) <= evaluator.panel.dates[evaluator.windows.search.stop - 1], request
    return "answered"


@pytest.mark.slow
def test_for_minutes_whatever_is_asked(tmp_path: Path) -> None:
    tally: Counter[str] = Counter()
    with served_on(tmp_path, market()) as (served, ids), talking(served) as talk:
        evaluator, told = served.evaluator, dict[str, Any](trials=-1)
        histories = talk.ask([("market.get_history", {"field": field}) for field in ("close", "volume")])
        handles = [history.structured_content["handle"] for history in histories]
        either = calls(ids, talk.tools()) | requests(handles, ids)

        def ask(said: list[Any]) -> None:
            answers = talk.ask(said)
            if (trials := len(evaluator.ledger.trials.all())) != told["trials"]:
                told.update(trials=trials, secrets=later(evaluator))
            for call, answer in zip(said, answers, strict=True):
                if isinstance(call[1], tuple):
                    tally[check_other(answer, call, evaluator)] += 1
                elif isinstance(answer, UnicodeEncodeError):
                    tally["not sent"] += 1
                else:
                    check(answer, call, evaluator, told["secrets"])
                    tally["refused" if answer.is_error else "answered"] += 1
            assert half_written(evaluator.ledger, evaluator) == []

        seeds = repeat(time.monotonic() + PARTS["calls"] * SECONDS, st.lists(either, min_size=10, max_size=25), ask)
    print(f"\n{tally.total():,} requests of {seeds} seeds in memory: {dict(tally)}")
    assert min(tally["answered"], tally["refused"]) > 0


@pytest.mark.slow
def test_what_comes_after_the_search_window_changes_no_byte(tmp_path: Path) -> None:
    """Two markets that are the same up to the end of the search window answer everything alike, but the gate."""
    panel = market()
    count = 0
    with served_on(tmp_path / "one", panel) as (one, ids):
        stop = one.evaluator.windows.search.stop
        with (
            served_on(tmp_path / "other", otherwise(panel, stop)) as (other, _),
            talking(one, patient=True) as a,
            talking(other, patient=True) as b,
        ):
            tools = a.tools()
            del tools["evaluation.submit_to_gate"]

            def ask(said: list[Any]) -> None:
                nonlocal count
                count += len(said)
                for call, *pair in zip(said, a.ask(said), b.ask(said), strict=True):
                    mine, its = (shown(answer) for answer in pair)
                    assert mine == its, call

            drawn = st.lists(calls(ids, tools) | requests([], ids), min_size=10, max_size=25)
            seeds = repeat(time.monotonic() + PARTS["twins"] * SECONDS, drawn, ask)
    print(f"\n{count:,} requests of {seeds} seeds to two markets that differ on later days: the same answers")


def unfinished(answer: Any) -> bool:
    """Tell whether an answer is that of a job that goes on."""
    body = getattr(answer, "structured_content", None) or {}
    return "job" in body and body.get("status") in {"waiting", "running"}


def otherwise(panel: Panel, stop: int) -> Panel:
    """Return a market that goes on otherwise after some day."""
    rng = np.random.default_rng(3)
    fields = {}
    for name, values in panel.fields.items():
        fields[name] = values.copy()
        fields[name][stop:] *= np.exp(rng.normal(0.0, 0.3, values[stop:].shape)).astype(values.dtype)
    return replace(panel, fields=fields)


def shown(answer: Any) -> str:
    """Return an answer without what hangs on a folder's key."""
    if isinstance(answer, MCPError):
        return json.dumps(answer.error.model_dump(), default=str, sort_keys=True)
    if isinstance(answer, UnicodeEncodeError):
        return "not sent"
    body = getattr(answer, "structured_content", None)
    if body is None:
        return str(answer.model_dump_json())
    return json.dumps({key: value for key, value in body.items() if key not in OWN}, sort_keys=True)
