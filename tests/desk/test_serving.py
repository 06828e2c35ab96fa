"""`alphaloom serve mcp`: what is refused before anything is opened, and real servers from start to graceful end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from alphaloom.desk.cli.main import run_command

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
CAMPAIGN = """
market:
  synthetic: {days: 420, names: 40}
  labels: {cap: [confidential]}
evidence:
  windows: {search: 0.6, selection: 0.2, min_search_days: 60, min_selection_days: 40, min_sealed_days: 40}
"""
OPEN = "data:read,factor:read"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name one of market"),
        (["--all", "market"], "or write --all"),
        (["market", "--auth", "t.yaml"], "add --http"),
        (["market", "--http", "127.0.0.1:0", "--auth", "t.yaml"], "write --all"),
        (["--all", "--http", "127.0.0.1:0"], "alphaloom token create"),
        (["--all", "--http", "127.0.0.1", "--auth", "t.yaml"], "HOST:PORT"),
        (["--all", "--http", "127.0.0.1:0", "--auth", "t.yaml", "--scopes", "data:read"], "each token has"),
        (["--all", "--http", "127.0.0.1:0", "--auth", "t.yaml", "--hosts", "https://mcp.example"], "no name of a host"),
        (["market", "--scopes", "data:reed"], "did you mean data:read?"),
    ],
)
def test_what_cannot_be_served_is_refused_with_what_to_write(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["serve", "mcp", *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def alphaloom(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "alphaloom", *arguments],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".root")},
    )


def answered(folder: Path, *arguments: str) -> Any:
    process = alphaloom(folder, *arguments, "--json")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out)


@contextmanager
def serving(folder: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start all servers and give their address; SIGTERM must end them with 0."""
    (folder / "c.yaml").write_text(CAMPAIGN)
    there = ["--campaign", "c.yaml", "--workspace", "w", "--http", "127.0.0.1:0", "--auth", "tokens.yaml"]
    process = alphaloom(folder, "serve", "mcp", "--all", *there, *more)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("http://"), line + process.stderr.read()
    try:
        yield process, line.partition("/NAME")[0]
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=300)
        assert (process.returncode, err) == (0, "")


async def asked(address: str, token: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(f"{address}/market/mcp", http_client=http)) as client,
    ):
        result = await client.call_tool(tool, arguments)
        return dict(result.structured_content or {})


def test_a_team_is_served_by_token_until_the_servers_end(tmp_path: Path) -> None:
    tokens = [
        answered(tmp_path, "token", "create", "--scopes", scopes, "--expires", "2099-01-01", "--file", "tokens.yaml")
        for scopes in (OPEN, OPEN + ",data:confidential")
    ]
    with serving(tmp_path) as (_, address):
        told = [anyio.run(asked, address, token["token"], "search_fields", {"query": "cap"}) for token in tokens]
        assert [[row["name"] for row in one["fields"]] for one in told] == [[], ["cap"]]
        refused = anyio.run(asked, address, tokens[0]["token"], "preview_panel", {"field": "cap"})
        assert "unknown field" in refused["message"]
        answered(tmp_path, "token", "revoke", tokens[0]["id"], "--file", "tokens.yaml")
        headers = {"authorization": f"Bearer {tokens[0]['token']}"}
        assert httpx2.post(f"{address}/market/mcp", headers=headers, json={}, timeout=60).status_code == 401
    rows = answered(tmp_path, "audit", "tail", "--workspace", "w")["calls"]
    assert [(row["who"], row["tool"], row["outcome"]) for row in rows] == [
        (tokens[0]["id"], "search_fields", "ok"),
        (tokens[1]["id"], "search_fields", "ok"),
        (tokens[0]["id"], "preview_panel", "refused"),
        ("anonymous", "http", "refused"),
    ]
    verified = answered(tmp_path, "audit", "verify", "--workspace", "w")
    assert verified["ok"]
    assert "not closed" not in json.dumps(verified)


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    answered(tmp_path, "token", "create", "--scopes", OPEN, "--expires", "2099-01-01", "--file", "tokens.yaml")
    with serving(tmp_path) as (_, address):
        again = ["--http", address.removeprefix("http://"), "--auth", "tokens.yaml", "--workspace", "v"]
        second = alphaloom(tmp_path, "serve", "mcp", "--all", *again)
        _, err = second.communicate(timeout=300)
        assert second.returncode == 1
        assert "cannot listen" in err


@pytest.mark.parametrize("asked", ["SIGTERM", "SIGINT", "SIGTERM twice", "hangs up, then SIGTERM"])
def test_a_client_that_loses_patience_leaves_nothing_open(asked: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CAMPAIGN)
    process = subprocess.Popen(
        [sys.executable, "-m", "alphaloom", "serve", "mcp", "--all", "--campaign", "c.yaml", "--workspace", "w"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".root")},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    for number, (method, params) in enumerate([("initialize", client), ("tools/call", {"name": "get_budget"})]):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == number
    if "hangs up" in asked:
        process.stdin.close()
        process.stdin = None
    for name in re.findall(r"SIG[A-Z]+", asked) * (2 if "twice" in asked else 1):
        process.send_signal(getattr(signal, name))
        time.sleep(0.1)
    process.wait(timeout=300)  # the client keeps its end open: a server that listened on would stay for good
    _, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    (row,) = answered(tmp_path, "audit", "tail", "--workspace", "w")["calls"]
    assert (row["who"], row["tool"], row["outcome"]) == ("stdio", "get_budget", "ok")
    verified = answered(tmp_path, "audit", "verify", "--workspace", "w")
    assert verified["ok"]
    assert "not closed" not in json.dumps(verified)
