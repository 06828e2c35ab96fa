"""The wall that bubblewrap builds: empty namespaces, no capability, a read-only root with the interpreter alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from ..backend import ENVIRONMENT
from .interpreter import this_interpreter
from .launch import InterpreterLaunch, find_tool
from .refusals import build_filter
from .sources import OPTIONS, program_text

__all__ = ["Bubblewrap"]

_NAMESPACES = (
    "--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session",
    "--clearenv", "--uid", "65534", "--gid", "65534", "--hostname", "none",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Start interpreters with `bwrap`: Linux, bubblewrap 0.8 or later, no root needed."""

    tool: str = "bwrap"
    name: ClassVar[str] = "bubblewrap"
    stamp: ClassVar[str] = ""
    hint: ClassVar[str] = "Install bubblewrap 0.8 or later, e.g.: apt install bubblewrap"

    def check(self) -> None:
        """Raise SandboxUnavailable where bwrap is missing."""
        find_tool(self.tool, self.hint)

    def launch(self) -> InterpreterLaunch:
        """Return how one interpreter is started, with a filter of system calls on a pipe."""
        reads, writes = os.pipe()
        os.write(writes, build_filter())
        os.close(writes)
        return InterpreterLaunch(self.command(reads), this_interpreter().paths, (reads,))

    def command(self, filter_descriptor: int) -> tuple[str, ...]:
        """Return the whole command line."""
        python = this_interpreter()
        shown = [("--ro-bind", place, place) for place in python.readable]
        links = [("--symlink", target, place) for place, target in python.links]
        told = [("--setenv", name, value) for name, value in ENVIRONMENT.items()]
        words = [word for group in [*shown, *links, *told] for word in group]
        return (
            find_tool(self.tool, self.hint), *_NAMESPACES, *words, "--chdir", "/", "--remount-ro", "/",
            "--seccomp", str(filter_descriptor),
            python.program, "-S", *OPTIONS, program_text(),
        )  # fmt: skip
