"""Drop the privileges of a process: capabilities, ways to regain them, and access to its memory by others."""

from __future__ import annotations

import ctypes
import math
import resource
import struct

from .libc import prctl, syscall

_DEATH_SIGNAL, _DUMPABLE, _NO_NEW_PRIVILEGES, _BOUNDING_DROP, _BOUNDING_READ = 1, 4, 38, 24, 23
_SIGKILL = 9
_VERSION_3 = 0x20080522
_ZERO_LIMITS = (
    "RLIMIT_CORE",
    "RLIMIT_FSIZE",
    "RLIMIT_MEMLOCK",
    "RLIMIT_MSGQUEUE",
    "RLIMIT_NPROC",
    "RLIMIT_RTPRIO",
    "RLIMIT_SIGPENDING",
)


def drop_privileges() -> None:
    """Die with the parent, give up every capability permanently, and close memory to debuggers."""
    prctl(_DEATH_SIGNAL, _SIGKILL)
    head = ctypes.create_string_buffer(struct.pack("=Ii", _VERSION_3, 0), 8)
    sets = ctypes.create_string_buffer(24)
    syscall("capset", ctypes.addressof(head), ctypes.addressof(sets))
    prctl(_NO_NEW_PRIVILEGES, 1)
    close_memory()


def close_memory() -> None:
    """Prevent other processes of the same user from reading or writing this one's memory."""
    prctl(_DUMPABLE, 0)


def empty_bounding_set() -> None:
    """Drop all capabilities from the bounding set, so that no new program regains them; children inherit it."""
    for capability in range(64):
        try:
            if prctl(_BOUNDING_READ, capability):
                prctl(_BOUNDING_DROP, capability)
        except OSError:  # beyond the last capability, or the right to drop is already gone
            return


def set_limits(address_space: int, seconds: float, descriptors: int) -> None:
    """Set the permanent limits of this process: bytes, seconds of processor time, open descriptors."""
    for name in _ZERO_LIMITS:
        _set_limit(getattr(resource, name), 0)
    _set_limit(resource.RLIMIT_CPU, math.ceil(seconds) + 1)
    _set_limit(resource.RLIMIT_NOFILE, descriptors)
    _set_limit(resource.RLIMIT_AS, address_space)


def _set_limit(which: int, value: int) -> None:
    _soft, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))
