"""Campaigns on a small landscape, each in a folder of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .doubles import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Callable[..., Lab]:
    """Return a maker of campaigns."""
    folders = (tmp_path / str(number) for number in itertools.count())
    return lambda **settings: Lab(next(folders), **settings)


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, dict[str, Any]]:
    """Return one undisturbed campaign and its last state."""
    campaign = Lab(tmp_path_factory.mktemp("calm"))
    return campaign, campaign.run()
