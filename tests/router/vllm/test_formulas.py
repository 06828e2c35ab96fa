"""What the offline researcher begins with can be written by a model that is held to the language's grammar."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from alphaloom.agents.nodes.factor_agent import GRAMMAR_WINDOWS
from alphaloom.agents.offline.mechanisms import fill_skeleton, load_mechanisms
from alphaloom.factors import decoding_grammar, parse

from .served import PYTHON, lacking, model

pytestmark = pytest.mark.slow

FIELDS = ("open", "high", "low", "close", "volume", "vwap", "returns", "amount", "cap", "adv20")
GROUPS = ("sector", "industry")
LEAST = 0.8
"""Share that can be written: the others name a keyword or a number that is in no short list."""


def accepted(grammar: str, texts: list[str]) -> list[bool]:
    asked = json.dumps({"grammar": grammar, "texts": texts, "model": str(model())})
    script: list[str | Path] = [PYTHON, __file__.replace("test_formulas", "accept")]
    process = subprocess.run(script, input=asked, capture_output=True, text=True, check=True)
    verdicts: list[bool] = json.loads(process.stdout)
    return verdicts


def test_skeletons_of_the_offline_researcher_can_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    if reason := lacking():
        pytest.skip(reason)
    rng = np.random.default_rng(1)
    texts = sorted({fill_skeleton(skeleton, FIELDS, rng) for one in load_mechanisms() for skeleton in one.skeletons})
    known = [text for text in texts if _is_formula(text)]
    verdicts = accepted(decoding_grammar(FIELDS, GROUPS, GRAMMAR_WINDOWS), known)
    lacked = [text for text, verdict in zip(known, verdicts, strict=True) if not verdict]
    with capsys.disabled():
        print(f"\n{sum(verdicts)} of {len(known)} skeletons can be written; not: {'; '.join(lacked)}")
    assert sum(verdicts) >= LEAST * len(known)
    assert accepted(
        decoding_grammar(FIELDS, GROUPS, GRAMMAR_WINDOWS), ["rank(1)", "close + volume", "ts_mean(close, 7)"]
    ) == [
        False,
        False,
        False,
    ]


def _is_formula(text: str) -> bool:
    try:
        parse(text, fields=FIELDS, groups=GROUPS)
    except Exception:  # noqa: BLE001 - of another market
        return False
    return True
