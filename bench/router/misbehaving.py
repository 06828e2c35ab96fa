"""Print what model servers that misbehave cost; the table of `tests/router/misbehaving.py`."""

from __future__ import annotations

from tests.router.misbehaving import main

__all__ = ["main"]
