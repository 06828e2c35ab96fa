"""What the tests of the desk share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import example

Run = Callable[..., Path]


@pytest.fixture
def finished(tmp_path: Path) -> Run:
    """Return a function that lays a finished run's files into a folder."""

    def lay(results: dict[str, Any] | None = None, curves: dict[str, Any] | None = None) -> Path:
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        (folder / "results.json").write_text(json.dumps(example.results() if results is None else results))
        (folder / "curves.json").write_text(json.dumps(example.curves() if curves is None else curves))
        return folder

    return lay
