"""Facts about this machine; None for a fact that cannot be read."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

BYTES_PER_GB = 1e9


def python() -> str:
    """Return the interpreter's version."""
    return ".".join(map(str, sys.version_info[:3]))


def version(distribution: str) -> str | None:
    """Return the installed version of a distribution, without importing it."""
    import importlib.metadata

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_gb() -> float | None:
    """Return the memory of the machine in GB."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / BYTES_PER_GB
    except (AttributeError, ValueError, OSError):
        return None


def disk_free_gb(place: Path) -> float | None:
    """Return the free space in GB where a folder is, or would be."""
    try:
        return shutil.disk_usage(_find_existing_folder(place)).free / BYTES_PER_GB
    except OSError:
        return None


def write_obstacle(place: Path) -> str | None:
    """Return why a folder cannot be written to, or None if it can."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=_find_existing_folder(place)):
            return None
    except OSError as error:
        return error.strerror or str(error)


def kernels() -> tuple[Path, int]:
    """Return the folder of compiled kernels, and their number."""
    from platformdirs import user_cache_path

    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or user_cache_path("alphaloom")) / "kernels"
    return folder, sum(1 for _ in folder.rglob("*.nbi")) if folder.is_dir() else 0


def _find_existing_folder(place: Path) -> Path:
    """Return the folder itself, or the nearest one above it that exists."""
    place = place.resolve()
    return next(folder for folder in (place, *place.parents) if folder.exists())
