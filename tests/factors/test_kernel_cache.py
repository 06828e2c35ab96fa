"""Kernels run whatever becomes of their cache."""

from __future__ import annotations

import errno
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.caching import FunctionCache, UserProvidedCacheLocator

from alphaloom.factors.kernels import kernel_cache
from alphaloom.factors.kernels.kernel_cache import kernel


def twice(values: Any) -> Any:
    return values * 2


def test_a_kernel_runs_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(self: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(UserProvidedCacheLocator, "ensure_cache_path", nowhere)
    assert kernel(twice)(np.ones(2)).tolist() == [2, 2]


def test_checkouts_with_the_same_sources_share_machine_code_and_others_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constant of another file of the folder is part of the machine code too."""
    monkeypatch.setattr(kernel_cache, "find_cache_folder", lambda: str(tmp_path / "cache"))
    hits = []
    for place, factor in (("one", 3), ("other", 3), ("changed", 5)):
        folder = tmp_path / place / "shop"
        folder.mkdir(parents=True)
        (folder / "rates.py").write_text(f"FACTOR = {factor}\n")
        (folder / "goods.py").write_text("from shop.rates import FACTOR\n\n\ndef price(v):\n    return v * FACTOR\n")
        with monkeypatch.context() as patched:
            patched.syspath_prepend(tmp_path / place)
            made: Any = kernel(importlib.import_module("shop.goods").price)
            assert made(np.ones(2)).tolist() == [factor, factor]
        hits.append(bool(made._compiled.stats.cache_hits))
        for name in ("shop", "shop.goods", "shop.rates"):
            del sys.modules[name]
    assert hits == [False, True, False]


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
