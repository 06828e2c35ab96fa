"""`alphaloom models gate`: what is refused before it listens, and a real one from start to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from alphaloom.desk.cli.main import run_command

from ..serving.gateway.modelled import modelled

pytestmark = pytest.mark.integration

Capture = pytest.CaptureFixture[str]
CHAT = "/v1/chat/completions"
CALL = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def token(capsys: Capture, *more: str, scopes: str = "model:ask") -> dict[str, Any]:
    capsys.readouterr()
    made = ["token", "create", "--scopes", scopes, "--expires", "2990-01-01", "--file", "tokens.yaml", "--json", *more]
    assert run_command(made) == 0
    return dict(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["http://127.0.0.1:1"], "places: N in the file of tenants"),
        (["ftp://127.0.0.1:1"], "no http:// or https:// address"),
        (["http://u:pw@127.0.0.1:1", "--places", "1"], "must be such as http://127.0.0.1:8000"),
        (["http://127.0.0.1:1", "--places", "1", "--server", "http://127.0.0.1:2"], "is for a plan"),
        (["none.yaml"], "cannot be read"),
        (["http://127.0.0.1:1", "--places", "1", "--listen", "8100"], "HOST:PORT"),
        (["http://127.0.0.1:1", "--places", "1", "--auth", "none"], "there is no file of tokens none"),
        (["http://127.0.0.1:1", "--tenants", "t.yaml"], "did you mean tenants?"),
    ],
)
def test_what_cannot_be_is_said_before_anything_listens(
    arguments: list[str], said: str, elsewhere: Path, capsys: Capture
) -> None:
    token(capsys)
    (elsewhere / "t.yaml").write_text("tenant: {}\n")
    auth = [] if "--auth" in arguments else ["--auth", "tokens.yaml"]
    assert run_command(["models", "gate", *arguments, *auth]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_tenants_name_holds_nothing_strange(capsys: Capture) -> None:
    made = ["token", "create", "--scopes", "model:ask", "--expires", "2990-01-01", "--file", "t.yaml"]
    assert run_command([*made, "--tenant", 'a"} 1']) == 2
    assert "tenant" in capsys.readouterr().err


@contextmanager
def gate(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str], list[str]]]:
    command = [sys.executable, "-m", "alphaloom", "models", "gate", *arguments, "--listen", "127.0.0.1:0"]
    command += ["--auth", "tokens.yaml"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "THE_KEY": "own"}) as process:
        assert process.stderr is not None
        try:
            notes: list[str] = []
            while " passes calls on " not in "".join(notes[-1:]):
                notes.append(process.stderr.readline())
                assert notes[-1], "it ended"
            yield notes[-1].partition("/v1 ")[0], process, notes
            process.terminate()
            assert process.wait(300) == 0
            assert process.stderr.read() == "Ended.\n"
        finally:
            process.kill()


def test_tokens_are_tenants_until_they_are_revoked(elsewhere: Path, capsys: Capture) -> None:
    one, two = (token(capsys, "--tenant", "research")["token"] for _ in range(2))
    alone, other = token(capsys), token(capsys, scopes="data:read")
    operator = token(capsys, scopes="model:operate")["token"]
    (elsewhere / "tenants.yaml").write_text("places: 4\ntenants: {research: {share: 2}, reserch: {share: 3}}\n")
    with (
        modelled() as endpoint,
        gate(endpoint.address, "--tenants", "tenants.yaml", "--key-env", "THE_KEY") as (base, _, notes),
    ):
        assert "tenant reserch" in notes[0]
        with httpx2.Client(base_url=base, trust_env=False, timeout=60) as http:

            def ask(key: str) -> int:
                return http.post(CHAT, json=CALL, headers={"authorization": f"Bearer {key}"}).status_code

            assert [ask(key) for key in (one, two, alone["token"], other["token"], "alt_x")] == [
                200,
                200,
                200,
                403,
                401,
            ]
            told = http.get("/metrics", headers={"authorization": f"Bearer {one}"}).text
            assert 'alphaloom_gateway_placed_total{tenant="research"} 2\n' in told
            assert alone["id"] not in told
            told = http.get("/metrics", headers={"authorization": f"Bearer {operator}"}).text
            assert f'alphaloom_gateway_placed_total{{tenant="{alone["id"]}"}} 1\n' in told
            assert ask(operator) == 403
            assert run_command(["token", "revoke", alone["id"], "--file", "tokens.yaml"]) == 0
            assert ask(alone["token"]) == 401
    assert {headers["authorization"] for headers in endpoint.headers} == {"Bearer own"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_call_under_way_is_finished_at_the_end(number: signal.Signals, capsys: Capture) -> None:
    key = {"authorization": f"Bearer {token(capsys)['token']}"}
    with (
        modelled() as endpoint,
        gate(endpoint.address, "--places", "1") as (base, process, _),
        ThreadPoolExecutor() as pool,
    ):
        call = pool.submit(
            httpx2.post,
            base + CHAT,
            json={**CALL, "metadata": {"pause": 0.2}, "stream": True},
            headers=key,
            timeout=60,
        )
        while not endpoint.under_way:
            assert not call.done()
        process.send_signal(number)
        assert call.result().content.endswith(b"data: [DONE]\n\n")


def test_a_signal_in_its_first_moment_is_not_lost(capsys: Capture) -> None:
    token(capsys)
    for _ in range(3):
        with gate("http://127.0.0.1:1", "--places", "1"):
            """It is asked to end as soon as it has said where it is."""


def test_a_port_that_is_taken_is_told(capsys: Capture) -> None:
    token(capsys)
    with gate("http://127.0.0.1:1", "--places", "1") as (base, _, _):
        there = ["--listen", base.removeprefix("http://"), "--auth", "tokens.yaml", "--places", "1"]
        assert run_command(["models", "gate", "http://127.0.0.1:1", *there]) == 1
        assert "cannot listen" in capsys.readouterr().err
