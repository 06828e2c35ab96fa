"""Install what rivals need, in an environment of their own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..engine.environments import default_folder, install
from .methods.outside import ENVIRONMENT, PACKAGES

__all__ = ["main"]


def main(given: Sequence[str]) -> int:
    """Install them once."""
    parser = argparse.ArgumentParser(prog="python -m bench.search setup", description=__doc__)
    parser.add_argument("--environments", type=Path, default=default_folder(), help="where rivals are installed")
    install(parser.parse_args(given).environments, {ENVIRONMENT: PACKAGES})
    return 0
