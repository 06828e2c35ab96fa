"""What a person and a program are told about servers of models."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from alphaloom.desk.cli.main import run_command

Capture = pytest.CaptureFixture[str]
STAND_IN = Path(__file__).resolve().parents[1] / "serving" / "stand_in.py"
EIGHT = ("plan", "--gpu", "h200", "--model", "Llama-3.1-8B")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: Capture, *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert run_command(["models", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out + captured.err


def told(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert run_command(["models", *arguments, "--json"]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_a_person_gets_the_arithmetic_line_by_line(capsys: Capture) -> None:
    text = said(capsys, *EIGHT)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "weights 14.96 GiB 2 bytes a parameter; on one device" in lines
    assert "cache of a token 128.0 KiB 32 layers x 2,048 numbers (keys and values) x 2 bytes" in lines
    assert "hf download meta-llama/Llama-3.1-8B-Instruct" in " ".join(text.split())
    assert "all-reduce" not in text
    for what in (
        "usable",
        "fixed overhead",
        "activations",
        "sequences",
        "time to first token",
        "time per output token, 1",
    ):
        assert any(line.startswith(what) for line in lines), what
    assert "Assumed: matrix work reaches 65% of the device's peak" in text
    assert lines[-1].startswith("python -m vllm.entrypoints.openai.api_server --model meta-llama/Llama-3.1-8B-Instruct")


def test_a_program_gets_the_plan_and_the_command(capsys: Capture) -> None:
    record = told(capsys, *EIGHT, "--context", "4096", "--concurrency", "32")
    assert (record["flags"]["max-model-len"], record["flags"]["max-num-seqs"]) == (4096, 32)
    assert record["predictions"]["bound"] == "memory bandwidth"
    assert "--max-num-seqs 32" in record["command"]


def test_what_does_not_fit_is_refused_with_numbers(capsys: Capture) -> None:
    text = said(capsys, "plan", "--gpu", "l40s", "--model", "Llama-3.1-405B", code=3)
    assert re.search(r"does not fit on 8 x NVIDIA L40S 48 GB in fp8: .* \d+\.\d\d GiB are lacking", text)
    assert "--gpu h200" in text
    record = told(capsys, "plan", "--gpu", "l40s", "--model", "Llama-3.1-405B", code=3)
    assert (record["code"], record["got"]) == ("does_not_fit", "l40s")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--gpu", "a100", "--model", "Qwen3-8B", "--dtype", "fp8"), 3, "computes in no FP8"),
        (("--gpu", "b900", "--model", "Qwen3-8B"), 2, "no device is known"),
        (("--gpu", "h100", "--model", "Qwen9"), 2, "no model is known"),
        (("--gpu", "h100", "--model", "Qwen3-8B", "--dtype", "int4"), 2, "int4"),
        (("--gpu", "h100", "--model", "Qwen3-8B", "--speculate", "draft"), 2, "--draft"),
        (("--gpu", "h100", "--model", "Qwen3-8B", "--memory-gb", "9"), 2, "--memory-gb is for --gpu cpu"),
        (("--gpu", "h100", "--model", "Qwen3-8B", "--acceptance", "0.5"), 2, "nothing is drafted"),
        (("--gpu", "cpu", "--model", "Qwen3-8B", "--memory-gb", "-20"), 2, "a machine with -20 GB of memory"),
        (("--gpu", "h100", "--model", "Qwen3-8B", "--context", "-5"), 2, "a context has a token at least"),
        (("--gpu", "h100", "--model", "Qwen3-8B", "--context", "99999999"), 2, "reads at most"),
    ],
)
def test_mistakes_are_told_in_words(capsys: Capture, arguments: tuple[str, ...], code: int, words: str) -> None:
    assert words in said(capsys, "plan", *arguments, code=code)


def test_a_cpu_has_the_memory_of_this_machine_unless_it_is_said(capsys: Capture) -> None:
    arguments = ("plan", "--gpu", "cpu", "--model", "Llama-3.2-1B", "--context", "1300", "--concurrency", "1")
    assert told(capsys, *arguments, "--memory-gb", "16")["device"]["memory_gib"] == 14.9
    here = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    if here > 8:
        assert told(capsys, *arguments)["device"]["memory_gib"] == pytest.approx(here, abs=0.01)


def test_a_plan_becomes_files_and_a_command(capsys: Capture, elsewhere: Path) -> None:
    said(capsys, *EIGHT, "--out", "plan.yaml")
    assert yaml.safe_load((elsewhere / "plan.yaml").read_text())["flags"]["max-model-len"] == 8192
    said(capsys, "files", "plan.yaml", "--kind", "kubernetes", "--out", "k8s.yaml")
    assert [one["kind"] for one in yaml.safe_load_all((elsewhere / "k8s.yaml").read_text())] == [
        "Deployment",
        "Service",
    ]
    assert "import_path: ray.serve.llm:build_openai_app" in said(capsys, "files", "plan.yaml", "--kind", "ray")
    text = said(capsys, "serve", "plan.yaml", "--dry-run", "--port", "8123", "--vllm", "env/bin/python -m vllm_here")
    assert text.startswith("VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 HF_HUB_OFFLINE=1 env/bin/python -m vllm_here --model")
    assert text.rstrip().endswith("--host 127.0.0.1 --port 8123")


def test_no_vllm_and_no_plan_are_said(capsys: Capture, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cannot be read" in said(capsys, "serve", "none.yaml", code=2)
    said(capsys, *EIGHT, "--out", "plan.yaml")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    text = said(capsys, "serve", "plan.yaml", code=3)
    assert "vLLM is neither in .alphaloom/vllm nor beside this program" in text
    assert "Add --install" in text
    assert "give a plan, or --install" in said(capsys, "serve", code=2)


def test_a_server_runs_until_it_is_asked_to_end(capsys: Capture, elsewhere: Path) -> None:
    said(capsys, *EIGHT, "--out", "plan.yaml")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-m", "alphaloom", "models", "serve", "plan.yaml", "--port", port, "--log", "log.txt"]
    with subprocess.Popen(
        [*command, "--vllm", shlex.join([sys.executable, str(STAND_IN)])],
        stderr=subprocess.PIPE,
        text=True,
        cwd=elsewhere,
    ) as served:
        assert served.stderr is not None
        first, second = served.stderr.readline(), served.stderr.readline()
        assert first.startswith("Starting as process")
        assert second.startswith(f"Ready at http://127.0.0.1:{port}/v1")
        time.sleep(0.1)
        served.send_signal(signal.SIGTERM)
        assert served.stderr.read() == "Ended.\n"
    assert served.returncode == 130
    assert "ended by SIGINT" in (elsewhere / "log.txt").read_text()


def test_a_taken_port_leaves_no_log_behind(capsys: Capture, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    said(capsys, *EIGHT, "--out", "plan.yaml")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot listen" in said(capsys, "serve", "plan.yaml", "--port", port, "--vllm", "true", code=1)
    assert list(elsewhere.glob("*.log")) == []
