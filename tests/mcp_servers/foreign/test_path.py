"""From a question to a verdict with other people's clients, of both protocol eras: all are told the same.

Over HTTP a client attaches to each server, over stdio to all of them as one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..numbers import floats
from .conftest import AT_MOST_S, INSTALLED, Clients
from .served import Place, over_http

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
CLIENTS = {
    "typescript 1": ("path_ts1", "", HANDSHAKE),
    "typescript 2": ("path_ts2", "auto", STATELESS),
    "typescript 2, handshake": ("path_ts2", "legacy", HANDSHAKE),
    "python 1": ("path_py1", "", HANDSHAKE),
    "python 2": ("path_py2", "auto", STATELESS),
    "python 2, handshake": ("path_py2", "legacy", HANDSHAKE),
}
"""A script, the mode that it is told, and the revision of the protocol that must come of it."""


@pytest.fixture(scope="module")
def seen() -> list[dict[str, Any]]:
    """What the clients before this one were told."""
    return []


def words(request: pytest.FixtureRequest, script: str) -> list[str]:
    """Return how a client's script is run, or skip it with the reason."""
    if script.startswith("path_ts"):
        clients: Clients = request.getfixturevalue("clients")
        return [str(clients.folder / "node_modules" / ".bin" / "node"), str(clients.folder / f"{script}.mjs")]
    python = INSTALLED / "python" / "bin" / "python" if script == "path_py1" else Path(sys.executable)
    if not python.exists():
        pytest.skip(f"no Python with mcp 1 in {INSTALLED}: `make foreign` makes it, and needs a package index")
    return [str(python), "-m", f"tests.mcp_servers.foreign.{script}"]


@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_comes_from_a_question_to_a_verdict(
    request: pytest.FixtureRequest, client: str, way: str, place: Place, seen: list[dict[str, Any]], tmp_path: Path
) -> None:
    script, mode, revision = CLIENTS[client]
    command = words(request, script)
    if way == "http":
        servers: Any = over_http(request.getfixturevalue("address"), place.token(client))
    else:
        servers = {"all": place.over_stdio()["all"]}
    (asked := tmp_path / "asked.json").write_text(json.dumps({"servers": servers, "mode": mode}))
    ran = subprocess.run(
        [*command, str(asked)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=AT_MOST_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout)
    assert told.pop("version") == revision
    verdict = told["verdicts"][0]
    assert (verdict["verdict"], list(floats(verdict))) == ("rejected", [])
    assert verdict["reasons"]
    assert told["job"]["status"] == "done"
    assert told["refused"] == {"isError": True, "code": "arguments", "field": "ids"}
    assert told in seen or not seen, "another client was told something else"
    seen.append(told)
