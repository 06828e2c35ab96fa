"""What the tests of the desk share."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from alphaloom.desk.web import Desk, build_app

from . import example
from .workspace import HERE

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


@pytest.fixture
def client(desk: Desk) -> Iterator[TestClient]:
    """Return a browser that has entered the desk of a test as ada."""
    with TestClient(build_app(desk), base_url=HERE, follow_redirects=False) as made:
        assert made.get(f"/enter/{desk.sessions.issue_launch('ada')}").status_code == 200
        yield made
