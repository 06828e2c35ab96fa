"""A PostgreSQL server for the tests: made in a folder of its own, started, stopped and restarted for real."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

PLACES = [*os.environ.get("PATH", "").split(os.pathsep), *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
PASSWORD = "s3cret:w@rd/of#the?loom"


def program(name: str) -> str | None:
    return next((found for place in PLACES if (found := shutil.which(name, path=place))), None)


def lacking() -> str:
    """Say why there can be no server here; empty where there can."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed: make postgres"
    if program("initdb") is None or program("pg_ctl") is None:
        return "no PostgreSQL server is installed: apt install postgresql"
    return ""


@dataclass
class Cluster:
    """A server in a folder; anybody may come by the socket, who comes by TCP needs the password."""

    folder: Path
    port: int
    user: str | None
    names: Iterator[int] = field(default_factory=lambda: count(1))

    def make(self) -> None:
        (self.folder / "password").write_text(PASSWORD)
        if self.user:
            for path in (self.folder, self.folder / "password"):
                shutil.chown(path, self.user)
        auth = ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={self.folder / 'password'}"]
        self.run("initdb", "-D", str(self.data), "-U", "loom", "-E", "UTF8", "--locale=C.UTF-8", *auth, "-N")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, name: str, *arguments: str) -> None:
        """Run one of the server's programs, never as root: it would refuse."""
        who: dict[str, Any] = {"user": self.user, "extra_groups": []} if self.user else {}
        told = program(name)
        assert told is not None
        log = self.folder / "said"
        with log.open("wb") as said:
            done = subprocess.run([told, *arguments], stdout=said, stderr=said, cwd=self.folder, check=False, **who)
        assert done.returncode == 0, log.read_text()

    def start(self) -> None:
        # The disk of a test does not lose its power, and no test measures the disk.
        options = f"-k {self.folder} -p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off"
        self.run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-o", options, "-w", "start")

    def stop(self, how: str = "immediate") -> None:
        self.run("pg_ctl", "-D", str(self.data), "-m", how, "-w", "stop")

    def restart(self) -> None:
        """Stop without a word to anybody, as after a crash, and start again."""
        self.run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "restart")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop every process of the server where it stands: connections stay open, and nothing is answered."""
        everyone = [pid for (pid,) in self.ask(self.address("postgres"), "SELECT pid FROM pg_stat_activity")]
        everyone.insert(0, int((self.data / "postmaster.pid").read_text().split()[0]))
        self.signal(everyone, signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(everyone, signal.SIGCONT)

    @staticmethod
    def signal(processes: list[int], number: signal.Signals) -> None:
        for process in processes:
            with suppress(ProcessLookupError):  # the one that told of the others
                os.kill(process, number)

    def address(self, name: str) -> str:
        return f"postgresql://loom@/{name}?host={self.folder}&port={self.port}"

    def by_tcp(self, name: str) -> str:
        return f"postgresql://loom@127.0.0.1:{self.port}/{name}"

    def database(self, more: str = "") -> str:
        """Make an empty database and return its address."""
        name = f"lab{next(self.names)}"
        self.ask(self.address("postgres"), f"CREATE DATABASE {name} {more}")
        return self.address(name)

    def ask(self, address: str, statement: str) -> list[Any]:
        """Run a statement from outside."""
        import psycopg

        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cluster() -> Iterator[Cluster]:
    """Run a server for as long as tests need it."""
    if why := lacking():
        pytest.skip(why)
    user = "nobody" if sys.platform != "win32" and os.geteuid() == 0 and pwd.getpwnam("nobody") else None
    folder = Path(tempfile.mkdtemp(prefix="loom-"))  # a short path, since a socket lies in it, that nobody may enter
    made = Cluster(folder, free_port(), user)
    try:
        made.make()
        made.start()
        yield made
        made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
