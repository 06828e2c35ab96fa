"""Start a bare interpreter: no site packages, only the given environment, and no other room imported."""

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

    Empty modules replace the packages, so that only the modules that the function needs are imported.
    """
    code = _START_CODE.format(
        home=str(_ROOM.parent),
        room=str(_ROOM),
        libraries=list(libraries),
        module=module,
        function=function,
        arguments=arguments,
    )
    return [sys.executable, "-s", "-S", "-P", "-B", "-X", "utf8", "-c", code]


@contextmanager
def fix_addresses() -> Iterator[None]:
    """Switch off address randomisation for programs that this thread starts: addresses must not be random input.

    Two servers then give the same bits for code that reads `id(...)`. Where the kernel refuses, only that is lost.
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
