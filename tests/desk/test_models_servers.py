"""Plans from recorded lengths, servers measured beside their plan, and vLLM installed, as a person asks for them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.ledger import Ledger, ModelCall, Run

from ..serving.measurement import streaming
from ..serving.measurement.streaming import serving
from .test_models import said

Capture = pytest.CaptureFixture[str]
PLAN = ("plan", "--gpu", "h200", "--model", "Llama-3.1-8B")
SHORT = ("--prompt-tokens", "20", "--reply-tokens", "3")
CALL = ModelCall("k", "one", "factor", "new", "local", "small", "p", "q", "r", 1000, 100, 0.0)
FAKE_UV = Path(__file__).resolve().parents[1] / "serving" / "fake_uv.py"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    return tmp_path


@pytest.fixture
def uv(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a stand-in for uv on the path, and enough disk below it."""
    (program := elsewhere / "tools" / "uv").parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE_UV}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("FAKE_UV_CALLS", str(elsewhere / "calls.txt"))
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10**12}))


def told(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert run_command(["models", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def record(place: Path) -> None:
    with Ledger.open(place, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        for run in ("one", "none"):
            ledger.runs.start(Run(run, {}, 1, "data", "2026"))
        for number in range(20):
            ledger.calls.add(replace(CALL, key=str(number), tokens_in=2000 + number))


def test_lengths_are_read_from_a_recorded_run(capsys: Capture, elsewhere: Path) -> None:
    record(elsewhere / ".alphaloom")
    plan = told(capsys, *PLAN, "--lengths-from", "one")
    assert (plan["predictions"]["prompt_tokens"], plan["predictions"]["reply_tokens"]) == (2010, 100)
    lines = {line["what"]: line["how"] for line in plan["arithmetic"]}
    assert lines["cache of a planned sequence"] == "2,118 tokens: 95% of the 20 calls of run one are no longer"
    assert "no model call with tokens" in said(capsys, *PLAN, "--lengths-from", "none", code=2)
    assert "says both lengths" in said(capsys, *PLAN, "--lengths-from", "one", *SHORT, code=2)


def test_a_price_and_int4_are_planned(capsys: Capture) -> None:
    plan = told(capsys, *PLAN, "--dtype", "awq", "--source", "/models/awq", "--usd-per-hour", "2.5")
    assert plan["predictions"]["usd_per_million_tokens"] > 0
    assert plan["flags"]["model"] == "/models/awq"
    assert "quantization" not in plan["flags"]
    assert "quantization" in told(capsys, *PLAN, "--dtype", "gptq")["flags"]
    assert "no --quantization is set" in plan["model"]["note"]
    assert "a price is above 0" in said(capsys, *PLAN, "--usd-per-hour", "0", code=2)


def test_a_server_is_measured_beside_its_plan(capsys: Capture, elsewhere: Path) -> None:
    with serving(streaming.well) as seen:
        text = said(capsys, *PLAN, *SHORT, "--measure", f"{seen.address}/v1", "--measure-out", "m.json")
    assert "tiny, version 0.32.0" in text
    assert "as you said: no server tells" in text
    assert "Measuring 8 at once: 16 requests" in text
    figures = json.loads((elsewhere / "m.json").read_text())
    assert [level["streams"] for level in figures["levels"]] == [1, 4, 8]
    assert [level["answered"] for level in figures["levels"]] == [2, 8, 16]
    assert len(seen.calls) == 27


def test_a_program_gets_the_measurement_with_the_plan(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "secret-key")
    with serving(streaming.well) as seen:
        record = told(capsys, *PLAN, *SHORT, "--measure", seen.address)
    assert record["measurement"]["server"]["version"] == "0.32.0"
    assert set(seen.keys) == {"Bearer secret-key"}
    assert "secret-key" not in json.dumps(record)


def test_a_server_that_does_not_answer_is_told_with_3(capsys: Capture) -> None:
    with serving(streaming.silent) as seen:
        text = said(capsys, *PLAN, *SHORT, "--measure", seen.address, "--measure-seconds", "1", code=3)
    assert "did not answer the first request within 1 s" in text
    assert "does not answer" in said(capsys, *PLAN, "--measure", "http://127.0.0.1:9", code=3)
    for wrong in ("ftp://here", "http://me:pw@127.0.0.1:8000", "127.0.0.1"):
        assert "must be such as" in said(capsys, *PLAN, "--measure", wrong, code=2)
    assert "goes with --measure" in said(capsys, *PLAN, "--measure-out", "m.json", code=2)


@pytest.mark.usefixtures("uv")
def test_vllm_is_installed_and_then_found(capsys: Capture, elsewhere: Path) -> None:
    text = said(capsys, "serve", "--install", "--build", "cpu")
    assert "vLLM 0.32.0 (cpu) is in .alphaloom/vllm" in text
    said(capsys, "plan", "--gpu", "cpu", "--memory-gb", "16", "--model", "Llama-3.2-1B", "--out", "plan.yaml")
    starter = f"{elsewhere}/.alphaloom/vllm/bin/python -m vllm.entrypoints.openai.api_server"
    assert starter in said(capsys, "serve", "plan.yaml", "--dry-run")
    assert starter in said(capsys, *PLAN)
    assert "env/bin/vllm --model" in said(capsys, "serve", "plan.yaml", "--dry-run", "--vllm", "env/bin/vllm")
    assert "already" in said(capsys, "serve", "plan.yaml", "--install", "--dry-run")


@pytest.mark.usefixtures("uv")
def test_the_build_is_that_of_the_plan(capsys: Capture, elsewhere: Path) -> None:
    said(capsys, *PLAN, "--out", "plan.yaml")
    text = said(capsys, "serve", "plan.yaml", "--install", "--dry-run", "--environment", "mine")
    assert "vLLM 0.33.0 (cuda) is in mine" in text
    assert f"{elsewhere}/mine/bin/python -m vllm" in text


@pytest.mark.usefixtures("uv")
def test_what_cannot_be_installed_ends_with_3(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_UV", "torch")
    text = said(capsys, "serve", "--install", "--build", "cpu", code=3)
    assert "no version of torch==2.13.0+cpu" in text
    assert "UV_FIND_LINKS" in text
