"""The version of the program that begins a run, and its commit where the installation tells it."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Final

PACKAGE_FOLDER = Path(__file__).resolve().parents[2]
PACKAGE: Final = sys.modules[__name__.partition(".")[0]]
"""The package itself, which is loaded already. An import would close a circle: it leads to every room."""
HASH_PATTERN: Final = re.compile(r"[0-9a-f]{40,64}")


def find_software() -> dict[str, str]:
    """Return version and commit; the commit is empty where neither a checkout nor the installer tells it.

    Of a checkout it is the commit that is checked out. Changes that were not committed are not seen.
    """
    commit = _read_checkout(PACKAGE_FOLDER / ".git") or _read_installation()
    return {"version": str(PACKAGE.__version__), "commit": commit}


def _read_checkout(folder: Path) -> str:
    """Return the commit of a git folder; empty where it is none, or is laid out in a way that is not read here."""
    try:
        head = (folder / "HEAD").read_text(encoding="utf-8").strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return _accept_hash(head)
        if (folder / name).is_file():
            return _accept_hash((folder / name).read_text(encoding="utf-8").strip())
        packed = (folder / "packed-refs").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return next((_accept_hash(line.split()[0]) for line in packed if line.endswith(f" {name}")), "")


def _accept_hash(text: str) -> str:
    return text if HASH_PATTERN.fullmatch(text) else ""


def _read_installation() -> str:
    """Return the commit that pip wrote down for a package installed from a repository; empty for any other."""
    try:
        origin = Distribution.from_name("alphaloom").read_text("direct_url.json")
        return _accept_hash(str(json.loads(origin or "{}").get("vcs_info", {}).get("commit_id", "")))
    except (PackageNotFoundError, ValueError, AttributeError):
        return ""
