"""Start Python as somebody else, where one may."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

__all__ = ["NOBODY", "ROOT", "as_user", "interpreter", "paths"]

NOBODY = 65534
ROOT = Path(__file__).resolve().parents[3]


def as_user(user: int | None) -> dict[str, int | list[int]]:
    """Return what `subprocess` must be told so that a process starts as this user without groups; nothing for None."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


def interpreter(user: int | None = None) -> str:
    """Return an interpreter of this version that the user may run: one in a closed home serves its owner only.

    Raises
    ------
    OSError
        There is none.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        try:
            subprocess.run([path, "-c", ""], check=True, cwd="/", **as_user(user))  # type: ignore[call-overload]
        except (OSError, subprocess.CalledProcessError):
            continue
        return path
    raise OSError(f"there is no Python {version} that user {user} may run")


def paths() -> str:
    """Return where an interpreter without this environment finds the same packages."""
    return os.pathsep.join((str(ROOT), str(ROOT / ".root"), str(Path(np.__file__).parents[1])))
