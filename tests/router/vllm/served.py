"""A real vLLM on this machine's processor with a tiny model, started as `alphaloom models serve` does."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from alphaloom.serving import Request, dump_plan, find_device, find_model, make_plan

from .corpus import corpus

ROOT = Path(__file__).parents[3]
PYTHON = Path(os.environ.get("VLLM_PYTHON") or ROOT / ".venv" / "vllm" / "bin" / "python")
MAKER = Path(__file__).with_name("make_model.py")
SIZES = {"tiny": (4, 256, 120), "draft": (1, 128, 120)}
"""Layers, width and training steps of the model and of the one that drafts for it."""
CONTEXT, STREAMS = 16_384, 64
DEADLINE = 600.0
COUNTS = re.compile(r"^vllm:(\w+?)(?:\{[^}]*\})? ([\d.e+-]+)$", re.MULTILINE)


def lacking() -> str:
    """Say why there can be no server here; empty where there can."""
    if not PYTHON.exists():
        return f"{PYTHON} is not there: make vllm, or name one with vLLM in VLLM_PYTHON"
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    absent = subprocess.run([PYTHON, "-c", look], check=False).returncode
    return f"{PYTHON} has no vLLM" if absent else ""


def model(name: str = "tiny") -> Path:
    """Return the folder of a model, which is made once for a corpus and a size."""
    texts = json.dumps(corpus())
    key = sha256(f"{texts}{SIZES}{MAKER.read_text(encoding='utf-8')}".encode()).hexdigest()[:12]
    place = ROOT / ".venv" / "vllm-models" / key
    place.mkdir(parents=True, exist_ok=True)
    (place / "corpus.json").write_text(texts, encoding="utf-8")
    if not (place / name / "tokenizer.json").exists():
        sizes = map(str, SIZES[name])
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
        command: list[str | Path] = [PYTHON, MAKER, place / "corpus.json", place / name, *sizes]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return place / name


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """Serves the tiny model under its name, `tiny`, until it is stopped or killed; it starts again on the same port."""

    folder: Path
    speculate: str = "none"
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    seconds: float = 0.0
    """Its last start took so long."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def plan(self) -> Path:
        draft = find_model(str(model("draft") / "config.json")) if self.speculate == "draft" else None
        request = Request(
            find_model(str(model() / "config.json")),
            CONTEXT,
            STREAMS,
            speculate=self.speculate,
            draft=draft,
            prompt_tokens=6_000,
        )
        plan = make_plan(request, find_device("cpu", 6.5))
        plan = plan.model_copy(
            update={"flags": plan.flags | {"enforce-eager": True}}
        )  # compiling takes longer than it saves
        file = self.folder / "plan.yaml"
        file.write_text(dump_plan(plan), encoding="utf-8")
        return file

    def start(self) -> Server:
        """Start, and return when it answers."""
        starter = f"{PYTHON} -m vllm.entrypoints.openai.api_server"
        command = [sys.executable, "-m", "alphaloom", "models", "serve", str(self.plan()), "--port", str(self.port)]
        command += ["--vllm", starter, "--log", str(self.folder / "vllm.log"), "--deadline", str(DEADLINE)]
        environment = os.environ | {
            "PYTHONPATH": str(ROOT / ".root"),
            "OMP_NUM_THREADS": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        }
        begun = time.monotonic()
        with (self.folder / "serve.out").open("wb") as said:
            self.process = subprocess.Popen(command, env=environment, stdout=said, stderr=subprocess.STDOUT)
        while "Ready at" not in self.said():
            assert self.process.poll() is None, self.said()
            time.sleep(0.2)
        self.seconds = time.monotonic() - begun
        return self

    def said(self) -> str:
        return (self.folder / "serve.out").read_text(encoding="utf-8", errors="replace")

    def kill(self) -> int:
        """Kill vLLM with all its processes, as a machine that fails does; return how its supervisor ended."""
        assert self.process is not None
        match = re.search(r"Starting as process (\d+)", self.said())
        assert match is not None
        os.killpg(int(match[1]), signal.SIGKILL)
        return self.process.wait(60)

    def stop(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
            self.process.wait(90)

    def counts(self) -> dict[str, float]:
        """Return the server's counters, summed over their labels."""
        with urllib.request.urlopen(f"{self.address}/metrics") as page:
            text = page.read().decode()
        sums: dict[str, float] = {}
        for name, value in COUNTS.findall(text):
            sums[name] = sums.get(name, 0.0) + float(value)
        return sums

    def settings(self, **more: Any) -> dict[str, Any]:
        """Return the section `models` of a campaign in which this server answers every role."""
        here = {"model": "hosted_vllm/tiny", "api_base": f"{self.address}/v1", "place": "local", "tier": "local"}
        roles = dict.fromkeys(("idea", "factor", "eval"), "local")
        return {"models": {"tiny": here}, "roles": roles, "timeout_seconds": 300} | more
