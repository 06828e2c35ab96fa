"""One decorator for every kernel: compiled at its first call, kept on disk where that is possible."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from platformdirs import user_cache_path

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def _digest(folder: Path) -> str:
    """Return a name for the state of every source in a folder.

    Numba looks only at the file of the kernel itself: with a helper or a constant changed in another file it would
    serve the old machine code. So every kernel, helper and constant of the engine lives in this folder.
    """
    sources = sorted(folder.glob("*.py"))
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in sources)).hexdigest()[:16]


_config: Any = numba.config  # reads NUMBA_CACHE_DIR
_CACHE = Path(_config.CACHE_DIR or user_cache_path("alphaloom")) / "kernels" / _digest(Path(__file__).parent)


def kernel(function: Kernel) -> Kernel:
    """Compile a function of arrays, without the interpreter lock."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    theirs, _config.CACHE_DIR = _config.CACHE_DIR, str(_CACHE)
    try:
        compiled.enable_caching()
        _forgive_full_disk(compiled)
    except RuntimeError:  # nowhere to write: compile anew in each process
        pass
    finally:
        _config.CACHE_DIR = theirs
    typed: Kernel = compiled
    return typed


def _forgive_full_disk(compiled: Any) -> None:
    """Let a kernel run although its machine code could not be kept."""
    save = compiled._cache.save_overload

    def save_if_possible(*overload: Any) -> None:
        with contextlib.suppress(OSError):
            save(*overload)

    compiled._cache.save_overload = save_if_possible
