"""An engine in a process of its own, asked one thing at a time."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..rivals.wire import Tree

ROOT = Path(__file__).resolve().parents[2]
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS", "NUMBA_NUM_THREADS"), "1"
)


class Process:
    """A contender that has read the columns of a folder.

    Parameters
    ----------
    python, module : str
        Interpreter and module.
    data : Path
        Folder of the columns.
    settings : dict
        Its settings.
    """

    def __init__(self, python: str, module: str, data: Path, settings: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [python, "-m", module, str(data), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **ONE_THREAD, "PYTHONWARNINGS": "ignore"},
        )
        self._read()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the process."""
        self._process.terminate()
        self._process.communicate()

    def ask(self, do: str, **question: Any) -> dict[str, Any]:
        """Ask and wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **question}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def prepare(self, key: str, trees: Sequence[Tree]) -> dict[str, float]:
        """Let it compile, or read, a set of formulas; return CPU and wall seconds."""
        return self.ask("prepare", key=key, trees=trees)

    def run(self, key: str) -> dict[str, float]:
        """Compute a set and return CPU and wall seconds."""
        return self.ask("run", key=key)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            _, said = self._process.communicate()
            raise RuntimeError(f"the engine ended with code {self._process.returncode}:\n{said[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer
