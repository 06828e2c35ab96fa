"""Kernels run whatever becomes of their cache."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np
import pytest
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

from alphaloom.factors.kernels.kernel_cache import kernel


def twice(values: Any) -> Any:
    return values * 2


def test_a_kernel_runs_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(self: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(Dispatcher, "enable_caching", nowhere)
    assert kernel(twice)(np.ones(2)).tolist() == [2, 2]


def test_a_kernel_runs_when_the_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: object, *overload: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FunctionCache, "load_overload", lambda self, *given: None)
    monkeypatch.setattr(FunctionCache, "save_overload", full)
    assert kernel(twice)(np.ones(2)).tolist() == [2, 2]
