"""Clients that are not ours, as `make foreign` installs them, and the real servers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .served import Place, place_in, started

HERE = Path(__file__).parent
INSTALLED = Path(os.environ.get("FOREIGN") or Path(sys.prefix) / "foreign")
"""Where `make foreign` installs them."""
AT_MOST_S = 300


@dataclass(frozen=True)
class Clients:
    """A folder with the npm packages, a Node that can run them, and a Python with an MCP library of its own."""

    folder: Path

    def run(self, *words: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of the packages, or a script of this folder with their Node."""
        path = os.pathsep.join([str(self.folder / "node_modules" / ".bin"), os.environ.get("PATH", "")])
        environment = {**os.environ, "PATH": path} | ({"HOME": str(home)} if home else {})
        return subprocess.run(
            words, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=AT_MOST_S, check=False
        )


@pytest.fixture(scope="session")
def clients() -> Clients:
    """Return the npm packages; the scripts of this folder lie beside them, where Node looks for what they import."""
    if not (INSTALLED / "node_modules" / ".bin" / "node").exists():
        pytest.skip(f"no clients in {INSTALLED}: `make foreign` installs them, and needs npm")
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, INSTALLED)
    return Clients(INSTALLED)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("foreign"))


@pytest.fixture(scope="session")
def token(place: Place) -> str:
    return place.token("the suites")


@pytest.fixture(scope="session")
def address(place: Place, token: str) -> Iterator[str]:
    """Start the real servers; the file of tokens is there before them."""
    assert token
    with started(place) as found:
        yield found
