"""Processes that tests start import the checkout that the tests stand in, whatever checkout is installed."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / ".root"


def pytest_configure() -> None:
    """Put the checkout before what is installed, for every process that is started from here."""
    places = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
