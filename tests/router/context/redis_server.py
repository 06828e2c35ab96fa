"""A Redis server for the tests: in a folder of its own, started, stopped and killed for real."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PASSWORD = "s3cret-w@rd/of#the?loom"
QUOTED = "s3cret-w%40rd%2Fof%23the%3Floom"


def program() -> str | None:
    return shutil.which("redis-server") or shutil.which("valkey-server")


def lacking() -> str:
    """Say why there can be no server here; empty where there can."""
    if importlib.util.find_spec("redis") is None:
        return "redis-py is not installed: make redis"
    return "" if program() else "no Redis server is installed: apt install redis-server"


@dataclass
class RedisServer:
    """Anybody who knows the password may come by the socket or by the port."""

    folder: Path
    port: int
    options: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"unix://:{QUOTED}@{self.folder}/socket"

    def by_tcp(self, password: str = QUOTED) -> str:
        return f"redis://:{password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        told = program()
        assert told is not None
        socket_options = ["--unixsocket", str(self.folder / "socket"), "--bind", "127.0.0.1", "--port", str(self.port)]
        quiet = ["--save", "", "--appendonly", "no", "--requirepass", PASSWORD, "--dir", str(self.folder)]
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen([told, *socket_options, *quiet, *self.options], stdout=said, stderr=said)
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0 and (self.folder / "socket").exists():
                    return
            time.sleep(0.02)
        raise AssertionError((self.folder / "said").read_text())

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def running() -> Iterator[RedisServer]:
    """Run a server for as long as tests need it."""
    if why := lacking():
        pytest.skip(why)
    folder = Path(tempfile.mkdtemp(prefix="loom-"))  # a short path, since a socket lies in it
    server = RedisServer(folder, free_port())
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
