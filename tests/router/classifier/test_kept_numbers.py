"""What was fitted is kept whole or not at all, and what was changed since is not believed."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom.router.classifier.fit import digest_arrays, load_arrays, save_arrays

ARRAYS = {"head": np.arange(6.0).reshape(2, 3), "limits": np.array([0.5, -1.0], dtype=np.float32)}


def test_what_is_kept_comes_back_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "new" / "one.npz"
    save_arrays(path, ARRAYS)
    found = load_arrays(path)
    assert found is not None
    assert digest_arrays(found) == digest_arrays(ARRAYS)
    assert [*path.parent.iterdir()] == [path]
    assert load_arrays(tmp_path / "none.npz") is None


@pytest.mark.parametrize(
    "other",
    [{"head": np.zeros((2, 3))}, {"head": ARRAYS["head"].reshape(3, 2)}, {"limits": np.array([0.5, -1.0])}, {"more": np.ones(1)}],
)  # fmt: skip
def test_other_numbers_under_the_same_digest_are_not_believed(tmp_path: Path, other: dict[str, Any]) -> None:
    assert digest_arrays(ARRAYS | other) != digest_arrays(ARRAYS)
    np.savez(tmp_path / "one.npz", **ARRAYS | other, digest=np.array(digest_arrays(ARRAYS)))
    assert load_arrays(tmp_path / "one.npz") is None


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Any, **arrays: Any) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    save_arrays(tmp_path / "one.npz", ARRAYS)
    assert [*tmp_path.iterdir()] == []
