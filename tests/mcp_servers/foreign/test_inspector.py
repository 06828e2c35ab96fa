"""The official inspector's command line against the real servers, over stdio and HTTP, in both protocol eras."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from alphaloom.mcp_servers.tools.servers import ALL_SERVERS, SERVERS

from .conftest import Clients
from .served import Place

pytestmark = pytest.mark.slow
FORMULA = "rank(ts_kurt(high / low, 30))"
Ask = tuple[str, Sequence[str], str]
"""A method, what it is told, and a word of the answer."""

ASKED: Mapping[str, Sequence[Ask]] = {
    "market": (
        ("tools/list", ["--strict"], "search_fields"),
        ("tools/call", ["--tool-name", "preview_panel", "--tool-args-json", '{"field": "close", "rows": 2}'], "dates"),
        ("resources/list", [], "alphaloom://fields"),
        ("resources/templates/list", [], "alphaloom://panels/{handle}/{part}"),
        ("resources/read", ["--uri", "alphaloom://universe"], "symbols"),
        ("prompts/list", [], "prompts"),
    ),
    "factors": (
        ("tools/list", ["--strict"], "check_factor"),
        ("tools/call", ["--tool-name", "explain_factor", "--tool-arg", f"text={FORMULA}"], "kurtosis"),
        ("resources/list", [], "alphaloom://operators"),
        ("resources/read", ["--uri", "alphaloom://operators/ts_kurt"], "ts_kurt"),
        ("prompts/list", [], "propose_factor"),
        ("prompts/get", ["--prompt-name", "propose_factor", "--prompt-args", "goal=shape"], "about this: shape"),
    ),
    "evaluation": (
        ("tools/list", ["--strict"], "submit_to_gate"),
        ("tools/call", ["--tool-name", "get_budget"], "trials_left"),
        ("resources/list", [], "alphaloom://rules"),
        ("resources/read", ["--uri", "alphaloom://rules"], "horizon_days"),
        ("prompts/list", [], "prompts"),
    ),
    "news": (
        ("tools/list", ["--strict"], "search_news"),
        ("tools/call", ["--tool-name", "search_news"], "next_cursor"),
        ("resources/list", [], "alphaloom://news"),
        ("resources/read", ["--uri", "alphaloom://news"], "next_cursor"),
        ("prompts/list", [], "prompts"),
    ),
    "all": (
        ("tools/list", ["--strict"], "submit_to_gate"),
        ("tools/call", ["--tool-name", "check_factor", "--tool-arg", f"text={FORMULA}"], "canonical"),
        ("resources/list", [], "alphaloom://universe"),
        ("resources/read", ["--uri", "alphaloom://operators/ts_kurt"], "ts_kurt"),
        ("prompts/list", [], "propose_factor"),
        ("prompts/get", ["--prompt-name", "propose_factor", "--prompt-args", "goal=shape"], "about this: shape"),
    ),
}
ERA_OVER_STDIO = {"market": "legacy", "factors": "modern", "evaluation": "legacy", "news": "modern", "all": "modern"}
"""One for each: every question starts a server of its own, which takes seconds."""


def configured(servers: Mapping[str, Any], folder: Path) -> Path:
    """Write the file that clients keep of the servers they know."""
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


def ask(clients: Clients, file: Path, server: str, era: str, words: Sequence[str]) -> tuple[int, str, str]:
    """Ask one question; return the exit code and what was written."""
    known = ["--config", str(file), "--server", server, "--protocol-era", era, "--connect-timeout", "120000"]
    ran = clients.run("mcp-inspector", "--cli", *known, "--format", "json", "--method", *words, home=file.parent)
    return ran.returncode, ran.stdout, ran.stderr


def unanswered(clients: Clients, file: Path, server: str, era: str) -> list[tuple[str, str, str]]:
    """Return the questions that were not answered as they should be."""
    missed = []
    for method, told, word in ASKED[server]:
        code, answer, errors = ask(clients, file, server, era, [method, *told])
        if code or word not in json.dumps(json.loads(answer)["result"]):
            missed.append((method, answer[:500], errors[-500:]))
    return missed


def reached(address: str, server: str, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return {"type": "streamable-http", "url": f"{address}/{server}/mcp", "headers": headers}


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("server", [ALL_SERVERS, *SERVERS])
def test_every_server_answers_over_http(
    clients: Clients, address: str, token: str, server: str, era: str, tmp_path: Path
) -> None:
    file = configured({server: reached(address, server, token)}, tmp_path)
    assert unanswered(clients, file, server, era) == []


@pytest.mark.parametrize("server", [ALL_SERVERS, *SERVERS])
def test_every_server_answers_over_stdio(clients: Clients, place: Place, server: str, tmp_path: Path) -> None:
    file = configured(place.over_stdio(), tmp_path)
    assert unanswered(clients, file, server, ERA_OVER_STDIO[server]) == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_what_is_refused_is_shown_as_refused(
    clients: Clients, address: str, token: str, era: str, tmp_path: Path
) -> None:
    servers = {"market": reached(address, "market", token), "stranger": reached(address, "market", "")}
    file = configured(servers, tmp_path)
    code, answer, errors = ask(clients, file, "market", era, ["tools/call", "--tool-name", "preview_panel"])
    assert (code, json.loads(answer)["result"]["structuredContent"]["code"]) == (5, "arguments"), errors
    code, _, errors = ask(clients, file, "market", era, ["resources/read", "--uri", "alphaloom://nothing"])
    assert code
    assert "no such resource" in errors
    code, _, errors = ask(clients, file, "stranger", era, ["tools/list", "--stored-auth-only"])
    assert code
    assert "auth_required" in errors
