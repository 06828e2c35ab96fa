"""How a bare interpreter is started: no site, no environment but what is given, and no room imported on the way in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..native.libc import syscall

_QUERY_PERSONALITY, _SAME_ADDRESSES = 0xFFFFFFFF, 0x0040000

_ROOM = Path(__file__).parents[1]
_START_CODE = """
import sys, types
for name, place in (("alphaloom", {home!r}), ("alphaloom.sandbox", {room!r})):
    sys.modules[name] = package = types.ModuleType(name)
    package.__path__ = [place]
sys.path.extend({libraries!r})
from alphaloom.sandbox.{module} import {function}
{function}({arguments})
"""


def build_command(module: str, function: str, arguments: str = "", libraries: tuple[str, ...] = ()) -> list[str]:
    """Return the command line that calls a function of this room in a new interpreter.

    The packages are stood in for by empty ones, so that only the modules which the function needs are imported.
    """
    code = _START_CODE.format(
        home=str(_ROOM.parent), room=str(_ROOM), libraries=list(libraries), module=module, function=function,
        arguments=arguments,
    )  # fmt: skip
    return [sys.executable, "-s", "-S", "-P", "-B", "-X", "utf8", "-c", code]


@contextmanager
def fix_addresses() -> Iterator[None]:
    """Let a program that this thread starts lie at the same addresses every time, so that code cannot read chance there.

    Two servers then give the same bits for code that looks at `id(...)`. Where the kernel refuses, nothing is lost but that.
    """
    try:
        before = syscall("personality", _QUERY_PERSONALITY)
        syscall("personality", before | _SAME_ADDRESSES)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        syscall("personality", before)
