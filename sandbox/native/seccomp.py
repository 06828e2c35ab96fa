"""The system calls that code in the jail may make, as a filter of the kernel.

A factor computes in memory, so a dozen calls are enough: memory without the right to execute, and a write to the
status pipe. A call of another architecture ends the process. Every other call stops until the watch outside has
recorded the attempt and answered it; it is never carried out.
Source: linux/seccomp.h, linux/filter.h; arguments are compared by the 32 bits that the kernel itself uses.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import struct
from dataclasses import dataclass

from .libc import syscall
from .syscalls import Machine

STATUS_FD, COURIER_FD = 3, 4
"""The descriptors of the status pipe, and of the socket over which the filter's listener is handed out."""
_ALLOWED_CALLS = ("brk", "close", "exit", "exit_group", "madvise", "mremap", "munmap", "restart_syscall")
_EXECUTE, _ANONYMOUS = 0x4, 0x20
_KILL, _ASK, _ALLOW, _DENY = 0x80000000, 0x7FC00000, 0x7FFF0000, 0x00050000 | errno.EPERM
_LOAD, _IF_EQUAL, _IF_NOT_LESS, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_SET_FILTER, _NEW_LISTENER = 1, 1 << 3
_WAKE_OWN = 0x81
"""FUTEX_WAKE_PRIVATE, with which a C library ends one-time work; it never waits, so it cannot measure time."""
_Line = tuple[int, int, int, int]
HARMLESS_CALLS = frozenset(
    [
        "access",
        "clock_getres",
        "clock_gettime",
        "clock_nanosleep",
        "dup",
        "dup2",
        "dup3",
        "eventfd2",
        "faccessat",
        "faccessat2",
        "fcntl",
        "fstat",
        "fstatfs",
        "futex",
        "getcpu",
        "getcwd",
        "getdents",
        "getdents64",
        "getegid",
        "geteuid",
        "getgid",
        "getgroups",
        "get_mempolicy",
        "getpgid",
        "getpgrp",
        "getpid",
        "getppid",
        "getpriority",
        "getrandom",
        "getrlimit",
        "getrusage",
        "getsid",
        "gettid",
        "gettimeofday",
        "getuid",
        "ioctl",
        "lseek",
        "lstat",
        "mbind",
        "membarrier",
        "mincore",
        "mmap",
        "mprotect",
        "nanosleep",
        "newfstatat",
        "newuname",
        "open",
        "openat",
        "pipe",
        "pipe2",
        "poll",
        "ppoll",
        "pread64",
        "preadv",
        "prlimit64",
        "read",
        "readlink",
        "readlinkat",
        "readv",
        "rt_sigaction",
        "rt_sigpending",
        "rt_sigprocmask",
        "sched_getaffinity",
        "sched_getparam",
        "sched_getscheduler",
        "sched_yield",
        "select",
        "pselect6",
        "set_mempolicy",
        "set_robust_list",
        "sigaltstack",
        "stat",
        "statfs",
        "statx",
        "sysinfo",
        "time",
        "times",
        "umask",
        "uname",
    ]
)
"""Calls that are answered with an error, after which the code continues. All others end the process."""
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE = struct.Struct("=QIIiIQ6Q")
_REPLY = struct.Struct("=QqiI")


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
    """Set the filter on this process, permanently, and return the descriptor of its listener."""
    code = ctypes.create_string_buffer(filter_program, len(filter_program))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(filter_program) // 8, ctypes.addressof(code)), 16)
    return syscall("seccomp", _SET_FILTER, _NEW_LISTENER, ctypes.addressof(head))


def _load(offset: int) -> _Line:
    return _LOAD, 0, 0, offset


def _return_action(action: int) -> _Line:
    return _RETURN, 0, 0, action


def _load_argument(position: int) -> _Line:
    return _load(_ARGUMENTS + 8 * position)  # both architectures are little-endian: the low half comes first


def _match_call(number: int, block: list[_Line]) -> list[_Line]:
    return [(_IF_EQUAL, 0, len(block), number), *block]


def _allow_values(position: int, values: tuple[int, ...]) -> list[_Line]:
    tests = [line for value in values for line in ((_IF_EQUAL, 0, 1, value), _return_action(_ALLOW))]
    return [_load_argument(position), *tests, _return_action(_ASK)]


def _deny_unless(position: int, value: int) -> list[_Line]:
    """Deny without a notice, except for one value: locks read other clocks than the one of the time of day."""
    return [_load_argument(position), (_IF_EQUAL, 0, 1, value), _return_action(_ASK), _return_action(_DENY)]


def _allow_without_bits(position: int, bits: int, then: list[_Line] | None = None) -> list[_Line]:
    return [
        _load_argument(position),
        (_IF_ANY_BIT, 0, 1, bits),
        _return_action(_ASK),
        *(then or [_return_action(_ALLOW)]),
    ]


def _allow_with_bits(position: int, bits: int) -> list[_Line]:
    return [_load_argument(position), (_IF_ANY_BIT, 0, 1, bits), _return_action(_ALLOW), _return_action(_ASK)]


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """One call that the filter stopped: the number of its notice, the system call, and its arguments."""

    notice: int
    number: int
    arguments: tuple[int, ...]


def take_refused_call(listener: int) -> RefusedCall | None:
    """Return the next stopped call; None when its process has ended."""
    buffer = bytearray(_NOTICE.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    notice, _pid, _flags, number, _arch, _pointer, *arguments = _NOTICE.unpack(buffer)
    return RefusedCall(notice, number, tuple(arguments))


def deny_call(listener: int, attempt: RefusedCall) -> None:
    """Answer a stopped call with "not permitted"."""
    buffer = bytearray(_REPLY.pack(attempt.notice, 0, -errno.EPERM, 0))
    try:
        fcntl.ioctl(listener, _SEND, buffer)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
