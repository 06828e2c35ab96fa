"""Landlock: no file can be opened, no TCP port or abstract socket reached, no process outside signalled.

The rule set has no rule, so every right that it handles is denied. No file needs to be readable in the jail, because
all modules are imported before. Source: linux/landlock.h; version 6 is the first that scopes signals and abstract
sockets.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from .libc import syscall

MIN_LANDLOCK_VERSION = 6
"""The first version that scopes signals and abstract unix sockets."""

_ASK_VERSION = 1
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of rights over files by the version that introduced it: refer came with 2, truncate with 3, ioctl with 5."""
_BIND_AND_CONNECT_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


def read_version() -> int:
    """Return the kernel's Landlock version; 0 where there is none."""
    try:
        return syscall("landlock_create_ruleset", 0, 0, _ASK_VERSION)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EINVAL):
            return 0
        raise


def list_rights(abi: int) -> tuple[int, int, int]:
    """Return the rights that a rule set of this version handles: over files, over TCP, and scopes."""
    known = max(count for since, count in _FILE_RIGHTS.items() if abi >= since)
    return (1 << known) - 1, _BIND_AND_CONNECT_TCP, _ABSTRACT_SOCKETS_AND_SIGNALS


def restrict_process(abi: int) -> None:
    """Deny this process all that Landlock can deny, permanently; `no_new_privs` must be set before."""
    attributes = ctypes.create_string_buffer(struct.pack("=QQQ", *list_rights(abi)), 24)
    ruleset = syscall("landlock_create_ruleset", ctypes.addressof(attributes), 24, 0)
    try:
        syscall("landlock_restrict_self", ruleset, 0)
    finally:
        syscall("close", ruleset)
