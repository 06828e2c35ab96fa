"""No wall at all: a plain process with an empty environment, under a name that nobody types by accident."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

from ..backend import ENVIRONMENT
from .interpreter import this_interpreter
from .launch import InterpreterLaunch
from .sources import OPTIONS, program_text

__all__ = ["UNSAFE", "UNSAFE_STAMP", "NoIsolation", "Unsafe"]

UNSAFE = "unsafe_no_isolation_i_accept_the_risk"
UNSAFE_STAMP = "computed by generated code that ran without isolation"


class NoIsolation(UserWarning):
    """Generated code is run with nothing between it and this account."""


@dataclass(frozen=True, slots=True)
class Unsafe:
    """Start interpreters with nothing around them: code can read, write and send whatever this account can."""

    name: ClassVar[str] = UNSAFE
    stamp: ClassVar[str] = UNSAFE_STAMP
    hint: ClassVar[str] = "Use a backend that isolates: native, bubblewrap, container or gvisor."

    def check(self) -> None:
        """Warn: there is nothing that could be missing."""
        warnings.warn(
            f"{UNSAFE}: generated code runs with every right of this account; whatever it computes carries a stamp",
            NoIsolation, stacklevel=2,
        )  # fmt: skip

    def launch(self) -> InterpreterLaunch:
        """Return how one interpreter is started."""
        python = this_interpreter()
        return InterpreterLaunch(
            (python.program, "-S", *OPTIONS, program_text()), python.paths, environment=ENVIRONMENT
        )
