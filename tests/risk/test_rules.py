"""Each rule that is removed on purpose is noticed by the tests of this folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from alphaloom.risk.rules import RULES

WITHOUT = """
import sys
import pytest
from alphaloom.risk import decision, rules, totals

place, whole = rules.RULES.index(sys.argv[1]), rules.list_limits


def list_limits(policy, reduces=False):
    limits = whole(policy, reduces)
    return (*limits[:place], None, *limits[place + 1 :])


decision.list_limits = totals.list_limits = list_limits
sys.exit(pytest.main(["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", sys.argv[2]]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_the_gate_without_a_rule_fails_its_tests(rule: str) -> None:
    """A rule without a limit holds whatever is asked: about three minutes for all rules."""
    folder = Path(__file__).parent
    command = [sys.executable, "-c", WITHOUT, rule, str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout[-2_000:] + ended.stderr[-2_000:]
