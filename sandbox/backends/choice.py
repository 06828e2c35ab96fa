"""Find a backend by its name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ..backend import ENVIRONMENT, Backend
from ..errors import BadInput, SandboxUnavailable
from .bubblewrap import Bubblewrap
from .container import Container
from .guest import Guests
from .gvisor import GVisor
from .launch import OPTIONS, InterpreterLaunch, Wall, find_interpreter, read_program

UNSAFE = "unsafe_no_isolation_i_accept_the_risk"
UNSAFE_STAMP = "computed by generated code that ran without isolation"
BACKENDS = ("native", "bubblewrap", "container", "gvisor", UNSAFE)
"""Every backend, by name; the last one isolates nothing."""
_LINUX = ("native", "bubblewrap", "gvisor")


def find_backend(name: str, *, command: str = "", image: str = "", platform: str = "") -> Backend:
    """Return a backend.

    Parameters
    ----------
    name
        One of `BACKENDS`.
    command
        The tool that builds the wall, where it is not the default: "podman", "/opt/bin/runsc".
    image
        Image of the container backend.
    platform
        Platform of gVisor.

    Raises
    ------
    BadInput
        No backend has this name.
    SandboxUnavailable
        This system does not support it; the hint names a backend that it supports.
    """
    if name not in BACKENDS:
        raise BadInput("there is no such sandbox", field="backend", got=name, allowed=", ".join(BACKENDS[:-1]))
    if name in _LINUX and sys.platform != "linux":
        raise SandboxUnavailable(
            f"{name} is made of parts of Linux, and this is {sys.platform}",
            field="backend",
            got=name,
            allowed="container",
            hint="Install docker or podman and choose the backend container.",
        )
    if name == "native":
        from ..native.backend import Native

        return Native()
    walls: dict[str, Callable[[], Wall]] = {
        "bubblewrap": lambda: Bubblewrap(**_drop_empty(tool=command)),
        "container": lambda: Container(**_drop_empty(tool=command, image=image)),
        "gvisor": lambda: GVisor(**_drop_empty(tool=command, platform=platform)),
        UNSAFE: Unsafe,
    }
    return Guests(walls[name]())


def _drop_empty(**options: str) -> dict[str, str]:
    return {name: value for name, value in options.items() if value}


class NoIsolation(UserWarning):
    """Generated code runs without isolation from this account."""


@dataclass(frozen=True, slots=True)
class Unsafe:
    """Start interpreters without isolation: code can read, write and send whatever this account can."""

    name: ClassVar[str] = UNSAFE
    stamp: ClassVar[str] = UNSAFE_STAMP
    hint: ClassVar[str] = "Use a backend that isolates: native, bubblewrap, container or gvisor."

    def check(self) -> None:
        """Warn that nothing isolates the code; no tool can be missing."""
        warnings.warn(
            f"{UNSAFE}: generated code runs with every right of this account; whatever it computes carries a stamp",
            NoIsolation,
            stacklevel=2,
        )

    def launch(self) -> InterpreterLaunch:
        """Return how one interpreter is started."""
        python = find_interpreter()
        return InterpreterLaunch(
            (python.program, "-S", *OPTIONS, read_program()), python.paths, environment=ENVIRONMENT
        )
