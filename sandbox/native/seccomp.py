"""The list of system calls that code in the jail may make, as a filter of the kernel.

A factor computes in memory, so a dozen calls are enough: memory without the right to execute, and a write to the
status pipe. A call of another architecture ends the process. Every other call stops until the warder outside has
written down what was tried and has answered it (see `seccomp_supervisor`); it is never carried out.
Source: linux/seccomp.h, linux/filter.h; arguments are compared by the 32 bits that the kernel itself looks at.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from .libc import syscall
from .syscalls import Machine

__all__ = ["COURIER", "STATUS", "program", "seal"]

STATUS, COURIER = 3, 4
"""The descriptors of the status pipe, and of the socket over which the filter's listener is handed out."""

_PLAIN = ("brk", "close", "exit", "exit_group", "madvise", "mremap", "munmap", "restart_syscall")
_EXECUTE, _ANONYMOUS = 0x4, 0x20
_KILL, _ASK, _ALLOW, _DENY = 0x80000000, 0x7FC00000, 0x7FFF0000, 0x00050000 | errno.EPERM
_LOAD, _IF_EQUAL, _IF_NOT_LESS, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_SET_FILTER, _NEW_LISTENER = 1, 1 << 3
_WAKE_OWN = 0x81
"""FUTEX_WAKE_PRIVATE: a C library ends whatever it does only once with it; it waits for nothing, so it tells no time."""
_Line = tuple[int, int, int, int]


def program(machine: Machine) -> bytes:
    """Return the filter for an architecture, as an array of `struct sock_filter`."""
    lines = [_load(_ARCHITECTURE), (_IF_EQUAL, 1, 0, machine.audit), _answer(_KILL), _load(_NUMBER)]
    if machine.foreign is not None:
        lines += [(_IF_NOT_LESS, 0, 1, machine.foreign), _answer(_KILL)]
    number = machine.numbers
    for name in _PLAIN:
        lines += [(_IF_EQUAL, 0, 1, number[name]), _answer(_ALLOW)]
    lines += _when(number["write"], _one_of(0, (STATUS, 1, 2)))
    lines += _when(number["sendmsg"], _one_of(0, (COURIER,)))
    lines += _when(number["clock_gettime"], _silent_unless(0, 0))
    lines += _when(number["futex"], _one_of(1, (_WAKE_OWN,)))
    lines += _when(number["mprotect"], _without(2, _EXECUTE))
    lines += _when(number["mmap"], _without(2, _EXECUTE, then=_with(3, _ANONYMOUS)))
    lines.append(_answer(_ASK))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def seal(filter_program: bytes) -> int:
    """Set the filter on this process, for good, and return the descriptor of its listener."""
    code = ctypes.create_string_buffer(filter_program, len(filter_program))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(filter_program) // 8, ctypes.addressof(code)), 16)
    return syscall("seccomp", _SET_FILTER, _NEW_LISTENER, ctypes.addressof(head))


def _load(offset: int) -> _Line:
    return _LOAD, 0, 0, offset


def _answer(action: int) -> _Line:
    return _RETURN, 0, 0, action


def _argument(position: int) -> _Line:
    return _load(_ARGUMENTS + 8 * position)  # both architectures are little-endian: the low half comes first


def _when(number: int, block: list[_Line]) -> list[_Line]:
    return [(_IF_EQUAL, 0, len(block), number), *block]


def _one_of(position: int, values: tuple[int, ...]) -> list[_Line]:
    tests = [line for value in values for line in ((_IF_EQUAL, 0, 1, value), _answer(_ALLOW))]
    return [_argument(position), *tests, _answer(_ASK)]


def _silent_unless(position: int, value: int) -> list[_Line]:
    """Refuse without a word, but tell of one value: locks look at other clocks than the one that tells the time."""
    return [_argument(position), (_IF_EQUAL, 0, 1, value), _answer(_ASK), _answer(_DENY)]


def _without(position: int, bits: int, then: list[_Line] | None = None) -> list[_Line]:
    return [_argument(position), (_IF_ANY_BIT, 0, 1, bits), _answer(_ASK), *(then or [_answer(_ALLOW)])]


def _with(position: int, bits: int) -> list[_Line]:
    return [_argument(position), (_IF_ANY_BIT, 0, 1, bits), _answer(_ALLOW), _answer(_ASK)]
