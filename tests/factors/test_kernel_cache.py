"""Kernels run whatever becomes of their cache."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

from alphaloom.factors.kernels import kernel_cache
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


@pytest.mark.parametrize("pattern", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("keep", [0, 60])
def test_a_spoilt_cache_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, keep: int
) -> None:
    monkeypatch.setattr(kernel_cache, "find_cache_folder", lambda: str(tmp_path))
    assert kernel(twice)(np.ones(2)).tolist() == [2, 2]
    spoilt = sorted(tmp_path.rglob(pattern))
    assert spoilt
    for path in spoilt:
        path.write_bytes(path.read_bytes()[:keep])
    assert kernel(twice)(np.ones(2)).tolist() == [2, 2]
    again: Any = kernel(twice)
    assert again(np.ones(2)).tolist() == [2, 2]
    assert again._compiled.stats.cache_hits
