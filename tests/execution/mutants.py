"""What runs tests on a program with a mistake in it."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

RUN = """
sys.exit(pytest.main(["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def check_mutant(script: str, files: Iterable[Path]) -> None:
    """Fail unless a test of the files fails after a script, which imports sys and pytest, has planted a mistake."""
    command = [sys.executable, "-c", script + RUN, *map(str, files)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    told = ended.stdout[-2_000:] + ended.stderr[-2_000:]
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, told
    assert "1 failed" in ended.stdout, told  # a script that breaks ends with the same code
