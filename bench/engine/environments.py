"""The rivals, and an environment of its own for each, made by one command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs


@dataclass(frozen=True)
class Contender:
    """One engine in one way of running it.

    Attributes
    ----------
    name : str
        What the tables call it.
    module : str
        What its process runs.
    packages : tuple of str
        What its environment holds; empty for alphaloom, which runs where the benchmark runs.
    settings : dict
        Given to its process.
    shares : bool
        False where the cost of a set of formulas is the sum of its parts; then only the parts are run.
    needs : str
        A program that must be there.
    """

    name: str
    module: str
    packages: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    shares: bool = True
    needs: str = ""

    @property
    def environment(self) -> str:
        """Return the name of its environment: contenders that need the same packages share one."""
        return self.module.rpartition(".")[2]

    @property
    def slug(self) -> str:
        """Return its name as files and compiled functions can carry it."""
        return "".join(letter if letter.isalnum() else "_" for letter in self.name)


NUMPY = "numpy==2.4.6"
PANDAS = ("pandas==3.0.3", NUMPY)
KUNQUANT = ("KunQuant==0.1.12", NUMPY)
OWN = Contender("alphaloom", "bench.engine.own")
STREAMED = Contender("alphaloom, streamed", OWN.module, settings={"stream": True})
"""Alphaloom with results dropped as they come, as a search does: only its memory is measured."""
RIVALS: tuple[Contender, ...] = (
    Contender("KunQuant 8 wide", "bench.rivals.kunquant", KUNQUANT, {"lanes": 8}, needs="g++"),
    Contender("KunQuant 16 wide", "bench.rivals.kunquant", KUNQUANT, {"lanes": 16}, needs="g++"),
    Contender("numpy+bottleneck", "bench.rivals.bottleneck_numpy", ("Bottleneck==1.6.0", NUMPY)),
    Contender("polars", "bench.rivals.polars_frame", ("polars==2.1.0", NUMPY)),
    Contender("pandas", "bench.rivals.pandas_reference", PANDAS, shares=False),
    Contender("pandas with numpy", "bench.rivals.pandas_reference", PANDAS, {"lags": True}, shares=False),
)
REFERENCE = "pandas with numpy"
"""The faster of the two: where values are compared, not times."""
SKIPPED = {
    "polars_ta with expr_codegen": "generates code for minutes for sixty formulas; polars itself is run instead",
    "Qlib": "reads its own binary store of one stock a file and has no cross-section in its expressions",
    "AlphaGen": "has no package to install, and reads its data through Qlib",
    "DolphinDB": "needs a licence and a server",
}
"""Engines that are not run, and why."""


def default_folder() -> Path:
    """Return where environments are kept unless told otherwise."""
    return Path(platformdirs.user_cache_dir("alphaloom")) / "benchmarks"


def set_up(folder: Path) -> None:
    """Make the environments of the engine's rivals that are not there yet."""
    install(folder, {rival.environment: rival.packages for rival in RIVALS})


def install(folder: Path, wanted: Mapping[str, tuple[str, ...]]) -> None:
    """Make the environments that are not there yet, each with its pinned packages."""
    for name, packages in wanted.items():
        place, made = folder / name, folder / name / "packages.json"
        if made.exists() and json.loads(made.read_text()) == list(packages):
            print(f"{name}: is there")
            continue
        print(f"{name}: installing {', '.join(packages)}", flush=True)
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        pip = [python_of(place), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, "--only-binary", ":all:", *packages], check=False).returncode:
            print(f"{name}: could not be installed; it will be left out", file=sys.stderr)
            continue
        made.write_text(json.dumps(list(packages)))


def missing(contender: Contender, folder: Path) -> str:
    """Say why a contender cannot run, or nothing."""
    if contender.needs and not shutil.which(contender.needs):
        return f"needs {contender.needs}"
    if contender.packages and not (folder / contender.environment / "packages.json").exists():
        return "is not installed: python -m bench.engine setup"
    return ""


def python_of(place: Path) -> str:
    """Return the interpreter of an environment."""
    return str(place / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def interpreter(contender: Contender, folder: Path) -> str:
    """Return the interpreter that runs a contender."""
    return python_of(folder / contender.environment) if contender.packages else sys.executable
