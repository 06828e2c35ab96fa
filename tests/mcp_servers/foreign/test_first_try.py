"""An agent of another framework scores a formula at the first try, from the texts of the tools alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from .conftest import AT_MOST_S, INSTALLED
from .served import Place

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("first_try.py")
PYTHON = INSTALLED / "langgraph" / "bin" / "python"


def test_an_agent_of_langgraph_scores_a_formula_at_the_first_try(place: Place, tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip(f"no LangGraph with MCP in {INSTALLED}: `make foreign` installs it, and needs a package index")
    (asked := tmp_path / "asked.json").write_text(json.dumps({"servers": {"all": place.over_stdio()["all"]}}))
    ran = subprocess.run(
        [str(PYTHON), str(SCRIPT), str(asked)],
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=AT_MOST_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout)
    assert len(told["tools"]) == 23
    words = set(re.findall(r"\w+", json.dumps(told["tools"])))
    assert {*re.findall(r"[a-z_]\w*", told["asked"]["text"]), *told["asked"]["hypothesis"]} <= words
    assert (told["status"], told["answer"]["ok"]) == ("success", True), told["answer"]
    assert isinstance(told["answer"]["sheet"]["rank_ic"], float)
