"""The Python that has NautilusTrader: an environment of its own, since Alphaloom may run on Python 3.11."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final, NoReturn

from ..errors import ExecutionError

REQUIREMENT: Final = "nautilus_trader>=2.0.0rc6,<2.1"
LEAST_PYTHON: Final = (3, 12)
LONGEST_PROBE_S: Final = 30.0
PROBE: Final = """
import json, sys
from importlib import metadata
try:
    version = metadata.version("nautilus_trader")
except metadata.PackageNotFoundError:
    version = ""
print(json.dumps([list(sys.version_info[:2]), version]))
"""
INSTALL: Final = (
    f"uv venv --python 3.12 FOLDER && uv pip install --python FOLDER/bin/python '{REQUIREMENT}'"
    " (without the versions, installers choose 1.x, since 2.0 is a release candidate). Then name FOLDER/bin/python."
)


def check_nautilus(python: Path | None) -> str:
    """Return the version of NautilusTrader that a Python has.

    Parameters
    ----------
    python
        Path of the interpreter; None where the setting has none.

    Raises
    ------
    ExecutionError
        There is no such Python, it is older than 3.12, or NautilusTrader is missing or of another version.
    """
    if python is None:
        _refuse("NautilusTrader needs Python 3.12 or later in an environment of its own, and none is named.", "")
    try:
        ran = subprocess.run([python, "-I", "-c", PROBE], capture_output=True, timeout=LONGEST_PROBE_S, check=True)
        release, version = json.loads(ran.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        _refuse("This is not a Python that runs.", str(python))
    if tuple(release) < LEAST_PYTHON:
        _refuse("NautilusTrader needs Python 3.12 or later; Alphaloom itself may stay on 3.11.", _name(release))
    if not version:
        _refuse("This Python does not have NautilusTrader.", str(python))
    if not is_supported(version):
        _refuse("This version of NautilusTrader is not supported.", version)
    return str(version)


def is_supported(version: str) -> bool:
    """Tell whether a version is 2.0 from its sixth release candidate on."""
    main, _, candidate = version.partition("rc")
    return main.split(".")[:2] == ["2", "0"] and (not candidate or int(candidate) >= 6)


def _name(release: list[int]) -> str:
    return "Python " + ".".join(map(str, release))


def _refuse(message: str, got: str) -> NoReturn:
    raise ExecutionError(
        message,
        field="execution.nautilus.python",
        got=got or None,
        allowed=f"a Python 3.12 or later with {REQUIREMENT}",
        hint=INSTALL,
        code="nautilus_missing",
        exit_code=3,
    )
