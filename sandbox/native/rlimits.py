"""What a process in the jail may use: address space and processor time, and nothing else at all."""

from __future__ import annotations

import math
import resource

__all__ = ["set_limits"]

_ZERO_LIMITS = (
    "RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE", "RLIMIT_NPROC", "RLIMIT_RTPRIO",
    "RLIMIT_SIGPENDING",
)  # fmt: skip


def set_limits(address_space: int, seconds: float, descriptors: int) -> None:
    """Set the limits of this process, for good: bytes, seconds of processor time, open descriptors."""
    for name in _ZERO_LIMITS:
        _set(getattr(resource, name), 0)
    _set(resource.RLIMIT_CPU, math.ceil(seconds) + 1)
    _set(resource.RLIMIT_NOFILE, descriptors)
    _set(resource.RLIMIT_AS, address_space)


def _set(which: int, value: int) -> None:
    _soft, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))
