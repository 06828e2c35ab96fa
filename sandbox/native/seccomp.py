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

__all__ = ["COURIER_FD", "STATUS_FD", "build_program", "install_filter"]

STATUS_FD, COURIER_FD = 3, 4
"""The descriptors of the status pipe, and of the socket over which the filter's listener is handed out."""

_ALLOWED_CALLS = ("brk", "close", "exit", "exit_group", "madvise", "mremap", "munmap", "restart_syscall")
_EXECUTE, _ANONYMOUS = 0x4, 0x20
_KILL, _ASK, _ALLOW, _DENY = 0x80000000, 0x7FC00000, 0x7FFF0000, 0x00050000 | errno.EPERM
_LOAD, _IF_EQUAL, _IF_NOT_LESS, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_SET_FILTER, _NEW_LISTENER = 1, 1 << 3
_WAKE_OWN = 0x81
"""FUTEX_WAKE_PRIVATE: a C library ends whatever it does only once with it; it waits for nothing, so it tells no time."""
_Line = tuple[int, int, int, int]


def build_program(machine: Machine) -> bytes:
    """Return the filter for an architecture, as an array of `struct sock_filter`."""
    lines = [_load(_ARCHITECTURE), (_IF_EQUAL, 1, 0, machine.audit), _return_action(_KILL), _load(_NUMBER)]
    if machine.foreign is not None:
        lines += [(_IF_NOT_LESS, 0, 1, machine.foreign), _return_action(_KILL)]
    number = machine.numbers
    for name in _ALLOWED_CALLS:
        lines += [(_IF_EQUAL, 0, 1, number[name]), _return_action(_ALLOW)]
    lines += _match_call(number["write"], _allow_values(0, (STATUS_FD, 1, 2)))
    lines += _match_call(number["sendmsg"], _allow_values(0, (COURIER_FD,)))
    lines += _match_call(number["clock_gettime"], _deny_unless(0, 0))
    lines += _match_call(number["futex"], _allow_values(1, (_WAKE_OWN,)))
    lines += _match_call(number["mprotect"], _allow_without_bits(2, _EXECUTE))
    lines += _match_call(number["mmap"], _allow_without_bits(2, _EXECUTE, then=_allow_with_bits(3, _ANONYMOUS)))
    lines.append(_return_action(_ASK))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def install_filter(filter_program: bytes) -> int:
    """Set the filter on this process, for good, and return the descriptor of its listener."""
    code = ctypes.create_string_buffer(filter_program, len(filter_program))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(filter_program) // 8, ctypes.addressof(code)), 16)
    return syscall("seccomp", _SET_FILTER, _NEW_LISTENER, ctypes.addressof(head))


def _load(offset: int) -> _Line:
    return _LOAD, 0, 0, offset


def _return_action(action: int) -> _Line:
    return _RETURN, 0, 0, action


def _argument(position: int) -> _Line:
    return _load(_ARGUMENTS + 8 * position)  # both architectures are little-endian: the low half comes first


def _match_call(number: int, block: list[_Line]) -> list[_Line]:
    return [(_IF_EQUAL, 0, len(block), number), *block]


def _allow_values(position: int, values: tuple[int, ...]) -> list[_Line]:
    tests = [line for value in values for line in ((_IF_EQUAL, 0, 1, value), _return_action(_ALLOW))]
    return [_argument(position), *tests, _return_action(_ASK)]


def _deny_unless(position: int, value: int) -> list[_Line]:
    """Refuse without a word, but tell of one value: locks look at other clocks than the one that tells the time."""
    return [_argument(position), (_IF_EQUAL, 0, 1, value), _return_action(_ASK), _return_action(_DENY)]


def _allow_without_bits(position: int, bits: int, then: list[_Line] | None = None) -> list[_Line]:
    return [_argument(position), (_IF_ANY_BIT, 0, 1, bits), _return_action(_ASK), *(then or [_return_action(_ALLOW)])]


def _allow_with_bits(position: int, bits: int) -> list[_Line]:
    return [_argument(position), (_IF_ANY_BIT, 0, 1, bits), _return_action(_ALLOW), _return_action(_ASK)]
