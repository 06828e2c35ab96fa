"""Fixed examples and the checkout's own processes, as in `tests/conftest.py`."""

from __future__ import annotations

from tests.conftest import pytest_configure

__all__ = ["pytest_configure"]
