"""Start Python as somebody else, where one may."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["NOBODY", "ROOT", "OutOfReach", "Place", "as_user", "copied", "interpreter", "paths", "within_reach"]

NOBODY = 65534
ROOT = Path(__file__).resolve().parents[3]
IMPORTS = "import numpy, pandas, alphaloom.sandbox, tests.sandbox.attacks"
SOURCES = ("__init__.py", "lazy.py", "sandbox", "tests/sandbox", "bench/sandbox")
PACKAGES = ("numpy", "numpy.libs", "pandas", "dateutil", "six.py", "pytz", "tzdata")


class OutOfReach(OSError):
    """The user has no interpreter, or may not read what it needs."""


@dataclass(frozen=True, slots=True)
class Place:
    """An interpreter, the checkout to start it in, and its PYTHONPATH."""

    python: str
    root: Path
    paths: str


def as_user(user: int | None) -> dict[str, int | list[int]]:
    """Return what `subprocess` must be told so that a process starts as this user without groups; nothing for None."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


@contextmanager
def within_reach(user: int | None, folder: Path) -> Iterator[Place]:
    """Yield where the user starts: here, or in a copy where the checkout or its packages lie in a closed folder.

    Raises
    ------
    OutOfReach
        The user has no interpreter, or may not enter `folder`, which it will write to.
    """
    python = interpreter(user)
    if not runs(f"import os; os.listdir({str(folder)!r})", python, user):
        raise OutOfReach(f"user {user} may not enter {folder}")
    if user is None or runs(IMPORTS, python, user, paths()):
        yield Place(python, ROOT, paths())
        return
    with tempfile.TemporaryDirectory(prefix="alphaloom-copy-") as copy:
        packages = copied(Path(copy))
        yield Place(python, Path(copy), paths(Path(copy), packages))


def copied(root: Path) -> Path:
    """Copy to `root` what the attacks need, readable for everybody, and return the folder of the packages there."""
    packages = root / "packages"
    for name in SOURCES:
        _copy(ROOT / name, root / name)
    for name in PACKAGES:
        _copy(_installed() / name, packages / name)
    (root / ".root").mkdir()
    (root / ".root" / "alphaloom").symlink_to("..")
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    return packages


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    elif source.exists():
        shutil.copyfile(source, target)


def interpreter(user: int | None = None) -> str:
    """Return an interpreter of this version that the user may run: one in a closed home serves its owner only.

    Raises
    ------
    OutOfReach
        There is none.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        if runs("", path, user):
            return path
    raise OutOfReach(f"there is no Python {version} that user {user} may run")


def runs(code: str, python: str, user: int | None, search: str = "") -> bool:
    """Tell whether the user can run this code."""
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": search}
    try:
        run = subprocess.run(  # type: ignore[call-overload]
            [python, "-B", "-c", code], env=environment, cwd="/", capture_output=True, check=False, **as_user(user)
        )
    except OSError:
        return False
    return bool(run.returncode == 0)


def paths(root: Path = ROOT, packages: Path | None = None) -> str:
    """Return where an interpreter without this environment finds the same packages."""
    return os.pathsep.join((str(root), str(root / ".root"), str(packages or _installed())))


def _installed() -> Path:
    return Path(np.__file__).parents[1]
