"""Servers started by the command line, as anybody would start them, and how much they have worked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from alphaloom.ledger.calls import CALLS_FOLDER
from alphaloom.mcp_servers.access import EVERY_SCOPE, Grant, create_token

ROOT = Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
ADDRESS = re.compile(r"(http://[^\s/]+)/")
START_S = 120
PATIENCE_S = 60.0


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def share(values: list[float], part: float) -> float:
    """Return the value below which a part of all lies."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


@dataclass(frozen=True)
class Served:
    """Servers over HTTP: their process, address and workspace, the token of each caller, and what they printed."""

    process: subprocess.Popen[bytes]
    url: str
    workspace: Path
    tokens: Sequence[str]
    log: Path

    def end(self) -> int:
        """Ask the servers to end and return how they did."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def verify(self) -> dict[str, Any]:
        """Return what `alphaloom audit verify` says of the record."""
        command = [*alphaloom(), "audit", "verify", "--workspace", str(self.workspace), "--json"]
        done = subprocess.run(command, capture_output=True, env=environment(), check=False)
        told: dict[str, Any] = json.loads(done.stdout)
        return {**told, "exit": done.returncode}

    @property
    def record(self) -> Path:
        """The folder of the record of calls."""
        return self.workspace / CALLS_FOLDER


@dataclass(frozen=True)
class Start:
    """Which servers to start: the rules of a campaign file, callers, and options of the command."""

    rules: dict[str, Any]
    callers: int = 1
    options: Sequence[str] = field(default_factory=tuple)


def alphaloom() -> list[str]:
    """Return the command line up to the command."""
    return [sys.executable, "-m", "alphaloom"]


def environment() -> dict[str, str]:
    """Return the environment in which this checkout is the package."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / ".root"), str(ROOT)])}


def campaign(folder: Path, rules: dict[str, Any]) -> Path:
    """Write a campaign file; JSON is YAML."""
    path = folder / "campaign.yaml"
    path.write_text(json.dumps(rules))
    return path


def stdio(folder: Path, rules: dict[str, Any], server: str) -> StdioServerParameters:
    """Return how a client starts one server."""
    workspace = ["--campaign", str(campaign(folder, rules)), "--workspace", str(folder / "stdio")]
    command = [*alphaloom()[1:], "serve", "mcp", server, *workspace]
    return StdioServerParameters(command=sys.executable, args=command, env=environment(), cwd=folder)


@contextmanager
def over_http(folder: Path, start: Start) -> Iterator[Served]:
    """Start all servers over HTTP with a token for every caller; they are ended with SIGTERM if they still run."""
    grant = Grant(tuple(sorted(EVERY_SCOPE)), (now() + timedelta(days=2)).date())
    tokens = [create_token(folder / "tokens.yaml", grant, now=now()).token for _ in range(start.callers)]
    workspace, log = folder / "http", folder / "server.log"
    command = [
        *alphaloom(), "serve", "mcp", "--all", "--http", "127.0.0.1:0", "--auth", str(folder / "tokens.yaml"),
        "--campaign", str(campaign(folder, start.rules)), "--workspace", str(workspace), *start.options,
    ]  # fmt: skip  # a table
    with started(command, log) as (process, url):
        yield Served(process, url, workspace, tokens, log)


@contextmanager
def started(command: Sequence[str], log: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Start a process that prints its address to standard error; end it if it still runs."""
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment())
    try:
        yield process, _address(process, log)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address that a process printed, once something answers there."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        found = ADDRESS.search(log.read_text())
        if found and _answers(found[1]):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"no server: {log.read_text()[-2000:]}")


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/health", timeout=5).status_code in {200, 404}
    except httpx2.TransportError:
        return False


@asynccontextmanager
async def client(url: str, token: str = "") -> Any:
    """Open a client of the SDK at an address."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(url, http_client=http)) as opened,
    ):
        yield opened


def cpu_below() -> float:
    """Return the seconds of CPU of all processes that this one started and that still run."""
    return sum(sum(times) for times in _descendants(os.getpid()).values()) / TICKS


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid: int) -> float:
    """Return the resident memory of a process, MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _descendants(root: int) -> dict[int, tuple[int, int]]:
    """Return the ticks, its own and the system's, of every process below one."""
    parents, ticks = dict[int, int](), dict[int, tuple[int, int]]()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(place.name)], ticks[int(place.name)] = int(fields[1]), (int(fields[11]), int(fields[12]))
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: ticks[pid] for pid in found - {root}}
