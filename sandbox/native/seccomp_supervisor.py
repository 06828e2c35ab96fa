"""What stands outside the filter: it is told each call that the filter stopped, and answers it with a refusal.

A call that a harmless library may make while it looks around (open a file, ask for the time) gets an error and the
code goes on. Any other call is an attempt to get out: the process is ended and the attempt is named.
"""

from __future__ import annotations

import errno
import fcntl
import struct
from dataclasses import dataclass

__all__ = ["HARMLESS_CALLS", "RefusedCall", "deny_call", "take_refused_call"]

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
"""Calls that are answered with an error; the code goes on. All others end the process."""

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE = struct.Struct("=QIIiIQ6Q")
_REPLY = struct.Struct("=QqiI")


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """One call that the filter stopped: the notice's own number, the system call, and its arguments."""

    notice: int
    number: int
    arguments: tuple[int, ...]


def take_refused_call(listener: int) -> RefusedCall | None:
    """Return the next stopped call; None when its process has gone."""
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
