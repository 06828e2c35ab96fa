"""The official conformance suite against our servers, by the requirements of both protocol eras."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from alphaloom.mcp_servers.tools.servers import ALL_SERVERS, SERVERS

from ..test_http_app import running
from .conftest import Clients
from .fixture_server import fixture_server
from .served import bearing
from .table import EXPECTED, UNTESTABLE, State, on_real

pytestmark = pytest.mark.slow
SCHEMA = "wire-schema-valid"
"""In every scenario: each message that we sent is what the schema of the revision says."""
CLEAN = {"INFO", "SKIPPED", "SUCCESS"}


@dataclass(frozen=True)
class Told:
    """The checks of a scenario that were kept, and those that were not."""

    kept: frozenset[str]
    missed: frozenset[str]

    def state(self, leaving: frozenset[str] = frozenset()) -> State:
        if self.missed - leaving:
            return State.MISSED
        return State.KEPT if self.kept - {SCHEMA} else State.SILENT


@pytest.fixture(scope="module")
def real(address: str, token: str) -> Iterator[str]:
    """Pass the suite on to the servers that the command line started."""
    with bearing(address, token) as passing:
        yield passing


@pytest.fixture(scope="module")
def fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Pass the suite on to our application, which serves one server more: the one with what the suite asks for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SERVERS, "fixture", fixture_server)
        with (
            running(tmp_path_factory.mktemp("fixture"), calls_per_minute=100_000) as served,
            bearing(served.url, "early") as passing,
        ):
            yield passing


def told_by(clients: Clients, url: str, revision: str, folder: Path) -> dict[str, Told]:
    """Run what a revision requires; return what the suite told of each scenario."""
    ran = clients.run("conformance", "server", "--url", url, "--requirements", revision, "-o", str(folder))
    told = {}
    for place in folder.iterdir():
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", place.name.removeprefix("server-"))
        checks = json.loads((place / "checks.json").read_text())
        kept = frozenset(check["id"] for check in checks if check["status"] == "SUCCESS")
        told[scenario] = Told(kept, frozenset(check["id"] for check in checks if check["status"] not in CLEAN))
    assert told, ran.stdout + ran.stderr
    return told


def invalid(told: dict[str, Told]) -> list[str]:
    """Return the scenarios in which we sent what the schema does not know."""
    return [name for name, each in told.items() if SCHEMA in each.missed]


@pytest.mark.parametrize("revision", EXPECTED)
def test_our_class_and_application_keep_the_protocol(
    clients: Clients, fixture: str, revision: str, tmp_path: Path
) -> None:
    told = told_by(clients, f"{fixture}/fixture/mcp", revision, tmp_path)
    assert {name: each.state() for name, each in told.items()} == {
        name: row.state for name, row in EXPECTED[revision].items()
    }
    assert invalid(told) == []


@pytest.mark.parametrize("revision", EXPECTED)
@pytest.mark.parametrize("server", [ALL_SERVERS, *SERVERS])
def test_the_real_servers_keep_what_needs_no_fixture(
    clients: Clients, real: str, server: str, revision: str, tmp_path: Path
) -> None:
    told = told_by(clients, f"{real}/{server}/mcp", revision, tmp_path)
    expected = on_real(server, revision)
    assert {name: told[name].state(UNTESTABLE) for name in expected} == expected
    assert invalid(told) == []
