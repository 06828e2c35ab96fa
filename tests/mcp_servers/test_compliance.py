"""The compliance server: explains and proves for supervisors alone, and changes no byte of the workspace."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from mcp.types import CallToolResult, InputRequiredResult

from alphaloom.evaluation.manifest import build_manifest
from alphaloom.ledger import Ledger, Run
from alphaloom.ledger.calls import ToolCall
from alphaloom.ledger.log import InclusionProof
from alphaloom.mcp_servers import CallerEntry, ServedCaller, open_sessions
from alphaloom.mcp_servers.access import EVERY_SCOPE, SUPERVISOR_SCOPES, Caller
from alphaloom.mcp_servers.tools import SERVERS, build_server

from ..desk.books import lay_books
from ..desk.workspace import LEAK, NOON, lay
from .opened import clock
from .test_fuzz import NESTED
from .test_http_app import Running, attached, running

TOOLS: Mapping[str, Mapping[str, Any]] = {
    "explain_decision": {"id": LEAK},
    "exposure_report": {},
    "get_manifest": {"run": "r1"},
    "get_proof": {"id": LEAK},
    "list_changes": {},
    "list_overrides": {},
}
Ask = Callable[..., CallToolResult]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = tmp_path_factory.mktemp("supervised")
    lay(workspace)
    lay_books(workspace)
    with Ledger.open(workspace, clock=lambda: NOON) as ledger:
        told = {"settings": {"agents": {"sensitivity": "confidential"}}}
        ledger.runs.start(Run("secret", told, 1, "d", NOON.isoformat()))
        ledger.events.record("secret", "alarm-acknowledged", LEAK, {"by": "ann", "reason": "a secret reason"})
    return workspace


@pytest.fixture
def calls() -> list[ToolCall]:
    return []


@pytest.fixture
def ask(place: Path, calls: list[ToolCall]) -> Ask:
    """Return what calls one tool as a supervisor, or with other scopes, or with a last day."""

    def call(
        tool: str, given: Mapping[str, Any], scopes: frozenset[str] = SUPERVISOR_SCOPES, day: date | None = None
    ) -> CallToolResult:
        entry = CallerEntry(Caller("eve", scopes, as_of=day), calls.append, day)
        served = ServedCaller.for_supervisor(place, entry, clock)

        async def converse() -> CallToolResult:
            async with open_sessions({"compliance": build_server("compliance", served)}) as sessions:
                return await sessions["compliance"].client.call_tool(tool, dict(given))

        return asyncio.run(converse())

    return call


def digest_all(folder: Path) -> dict[str, str]:
    """Return the digest of each file, without the memory that readers of SQLite share."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.endswith(("-shm", "-wal")))
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_every_tool_answers_a_supervisor_is_on_record_and_changes_no_byte(
    ask: Ask, place: Path, calls: list[ToolCall]
) -> None:
    before = digest_all(place)
    answers = {tool: ask(tool, asked) for tool, asked in TOOLS.items()}
    assert digest_all(place) == before
    assert not any(answer.is_error for answer in answers.values())
    assert [(call.who, call.server, call.tool) for call in calls] == [
        ("eve", "alphaloom-compliance", tool) for tool in TOOLS
    ]
    manifest = dict(answers["get_manifest"].structured_content or {})
    assert isinstance(manifest.pop("leaf"), int)
    with Ledger.open(place, clock=clock) as ledger:
        assert manifest == json.loads(json.dumps(build_manifest(ledger, ledger.runs.find("r1"))))
    body = answers["get_proof"].structured_content
    proof = InclusionProof.parse(body["proof"])
    account = answers["explain_decision"].structured_content
    assert proof.index == body["leaf"] == account["sentences"][0]["leaves"][0]
    assert json.loads(proof.entry)["table"] == "verdicts"
    leaf = ask("get_proof", {"id": f"leaf/{body['leaf']}"}).structured_content
    assert (leaf["leaf"], leaf["row"]) == (body["leaf"], body["row"])


def test_nobody_else_may_ask_and_no_agent_has_the_server(ask: Ask) -> None:
    assert "compliance" not in SERVERS
    assert not SUPERVISOR_SCOPES & EVERY_SCOPE
    for tool, asked in TOOLS.items():
        refusal = ask(tool, asked, EVERY_SCOPE)
        assert (refusal.is_error, refusal.structured_content["code"]) == (True, "forbidden")


def test_what_is_confidential_and_what_came_later_is_not_told(ask: Ask) -> None:
    refusal = ask("explain_decision", {"id": LEAK}, SUPERVISOR_SCOPES, date(2026, 5, 31))
    assert refusal.structured_content["code"] == "unknown_record"
    assert ask("get_proof", {"id": LEAK}, SUPERVISOR_SCOPES, date(2026, 5, 31)).is_error
    assert ask("list_overrides", {}, SUPERVISOR_SCOPES, date(2026, 5, 31)).structured_content["overrides"] == []
    assert "a secret reason" not in str(ask("list_overrides", {}).structured_content)
    both = SUPERVISOR_SCOPES | {"data:confidential"}
    assert "a secret reason" in str(ask("list_overrides", {}, both).structured_content)
    assert ask("get_manifest", {"run": "secret"}).structured_content["code"] == "forbidden"
    assert not ask("get_manifest", {"run": "secret"}, both).is_error


@dataclass
class Doorman:
    """Knows one supervisor and one researcher by their names."""

    waits: bool = False

    def verify(self, bearer: str) -> Caller:
        return Caller(bearer, SUPERVISOR_SCOPES if bearer == "eve" else EVERY_SCOPE)


def test_over_http_a_supervisor_opens_no_run_and_others_are_refused(tmp_path: Path) -> None:
    lay(tmp_path)

    async def ask_both(served: Running) -> list[CallToolResult | InputRequiredResult]:
        answers = []
        for who in ("eve", "ann"):
            async with attached(served, who, "compliance", "auto") as client:
                answers.append(await client.call_tool("explain_decision", {"id": LEAK}))
        return answers

    with running(tmp_path, verifier=Doorman()) as served:
        told, refused = asyncio.run(ask_both(served))
        assert isinstance(told, CallToolResult)
        assert isinstance(refused, CallToolResult)
    assert (told.is_error, told.structured_content["id"]) == (False, LEAK)
    assert refused.is_error
    with Ledger.open(tmp_path, clock=clock) as ledger:
        assert [run.id for run in ledger.runs.all()] == ["r1"]


@settings(max_examples=30)
@given(
    tool=st.sampled_from(sorted(TOOLS)),
    given_=st.dictionaries(st.sampled_from(["id", "run", "limit", "cursor", "x"]), NESTED, max_size=3),
    name=st.sampled_from(
        ["1", "r1", "paper", "leaf/0", "leaf/99", "events/1", "paper/2011-03-22", "\ud800", "' OR 1=1 --"]
    ),
)
def test_whatever_is_asked_is_answered_or_refused_with_a_code(
    place: Path, tool: str, given_: dict[str, Any], name: str
) -> None:
    entry = CallerEntry(Caller("eve", SUPERVISOR_SCOPES), lambda call: None)
    served = ServedCaller.for_supervisor(place, entry, clock)

    async def converse() -> list[CallToolResult | InputRequiredResult]:
        server = build_server("compliance", served)
        named = (
            {"id": name}
            if tool in {"explain_decision", "get_proof"}
            else {"run": name}
            if tool == "get_manifest"
            else {}
        )
        return [await server.call_tool(tool, given_), await server.call_tool(tool, named)]

    for result in asyncio.run(converse()):
        assert isinstance(result, CallToolResult)
        body = result.structured_content
        assert body is not None
        assert not result.is_error or {"code", "field", "got", "allowed", "hint", "message"} <= set(body)
        assert body.get("code") != "failed", body
