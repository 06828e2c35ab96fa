"""Run the attack suite in a process of its own and read what it told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tests.sandbox.attacks.users import NOBODY, ROOT

__all__ = ["besiege"]


def besiege(*arguments: str) -> Iterator[dict[str, Any]]:
    """Yield one record a snippet, then one for the end; as nobody, where root begins.

    Raises
    ------
    RuntimeError
        The suite itself failed.
    """
    user: Sequence[str] = ("--user", str(NOBODY)) if os.getuid() == 0 else ()
    command = [sys.executable, "-m", "tests.sandbox.attacks", *arguments, *user]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / ".root")))}
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            yield json.loads(line)
    if run.returncode not in (0, 1):
        raise RuntimeError(f"the attacks ended with exit code {run.returncode}")
