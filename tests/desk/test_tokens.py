"""A token is made, listed and revoked on the command line; its secret is said once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.mcp_servers.access import Tokens
from alphaloom.mcp_servers.errors import TokenRefused

Capture = pytest.CaptureFixture[str]
MADE = (
    "create",
    "--scopes",
    "data:read,factor:write",
    "--as-of",
    "2015-12-31",
    "--expires",
    "2990-01-31",
    "--note",
    "team X",
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert run_command(["token", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def said(capsys: Capture, *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert run_command(["token", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_the_token_alone_goes_to_standard_output(capsys: Capture, tmp_path: Path) -> None:
    assert run_command(["token", *MADE, "--file", "tokens.yaml"]) == 0
    captured = capsys.readouterr()
    caller = Tokens.open(tmp_path / "tokens.yaml", clock=lambda: datetime.now(UTC)).verify(captured.out.strip())
    assert caller.scopes == {"data:read", "factor:write"}
    assert "not shown again" in captured.err
    assert captured.out.strip() not in captured.err


def test_a_token_is_listed_without_its_secret_and_revoked_for_running_servers(capsys: Capture) -> None:
    made = told(capsys, *MADE, "--fields", "close,volume")
    tokens = Tokens.open(Path(made["file"]), clock=lambda: datetime.now(UTC))
    assert tokens.verify(made["token"]).fields == frozenset({"close", "volume"})
    for listed in (said(capsys, "list"), json.dumps(told(capsys, "list"))):
        assert all(part in listed for part in (made["id"], "live", "team X"))
        assert made["token"] not in listed
        assert "sha256" not in listed
    assert "revoked" in said(capsys, "revoke", made["id"])
    with pytest.raises(TokenRefused):
        tokens.verify(made["token"])
    assert told(capsys, "revoke", made["id"])["new"] is False
    assert told(capsys, "list")["tokens"][0]["standing"] == "revoked"


def test_every_mistake_is_said_at_once(capsys: Capture, elsewhere: Path) -> None:
    refused = said(capsys, "create", "--scopes", "data:reed,news", "--expires", "2990-01-01", code=2)
    assert "2 mistakes in the new token" in refused
    assert "did you mean data:read?" in refused
    assert list(elsewhere.rglob("tokens.yaml")) == []


def test_a_secret_given_as_an_id_is_not_repeated(capsys: Capture) -> None:
    made = told(capsys, *MADE)
    assert made["token"] not in said(capsys, "revoke", made["token"], code=2)
    assert "there is no file of tokens" in said(capsys, "list", "--file", "none.yaml", code=2)


def test_help_says_that_the_secret_is_shown_once(capsys: Capture) -> None:
    assert "never logged nor repeated" in " ".join(said(capsys, "create", "--help").split())
