"""Raw system calls that Python's own `os` does not offer."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

from .syscalls import find_machine

_LIBC = ctypes.CDLL(None, use_errno=True)
_RAW = _LIBC.syscall
_RAW.restype = ctypes.c_long
_RAW.argtypes = [ctypes.c_long] * 7


def syscall(name: str, *arguments: int) -> int:
    """Make a system call and return its answer.

    Raises
    ------
    OSError
        The kernel's error, with the name of the call.
    """
    machine = find_machine()
    if machine is None:
        raise OSError(38, "this machine's system calls are not known", name)
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    answer = int(_RAW(machine.numbers[name], *padded))
    if answer == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return answer


def prctl(option: int, value: int = 0) -> int:
    """Set or read one property of this process."""
    return syscall("prctl", option, value, 0, 0, 0)


class PrimitiveMissing(OSError):
    """A primitive that the kernel did not grant; `primitive` names it."""

    def __init__(self, primitive: str, error: OSError) -> None:
        super().__init__(error.errno, error.strerror)
        self.primitive = primitive

    def __str__(self) -> str:
        """Return the primitive and the kernel's error."""
        return f"{self.primitive}: {self.strerror}"


@contextmanager
def name_primitive(primitive: str) -> Iterator[None]:
    """Raise kernel errors of the block as `PrimitiveMissing` with this name."""
    try:
        yield
    except OSError as error:
        raise PrimitiveMissing(primitive, error) from error
