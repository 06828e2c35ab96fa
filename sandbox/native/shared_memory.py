"""Memory shared with the process in the jail: sealed files without a name, and mappings without a descriptor."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os

from .libc import syscall

_ADD_SEALS, _NO_EXECUTION = 1033, 0x8
_SEAL, _SHRINK, _GROW, _WRITE = 1, 2, 4, 8
_PROT_READ, _PROT_READ_WRITE = mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE


def create_file(name: str, size: int) -> int:
    """Return the descriptor of a new file in memory of this size, full of zeros."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        descriptor = os.memfd_create(name, flags | _NO_EXECUTION)
    except OSError as error:
        if error.errno != errno.EINVAL:  # before Linux 6.3
            raise
        descriptor = os.memfd_create(name, flags)
    os.ftruncate(descriptor, size)
    return descriptor


def seal_size(descriptor: int) -> None:
    """Forbid any change of a file's size, so that no mapping of it can be cut off."""
    fcntl.fcntl(descriptor, _ADD_SEALS, _SEAL | _SHRINK | _GROW)


def seal_whole(descriptor: int) -> None:
    """Forbid any change of a file."""
    fcntl.fcntl(descriptor, _ADD_SEALS, _SEAL | _SHRINK | _GROW | _WRITE)


def map_file(descriptor: int, size: int, *, write: bool) -> int:
    """Map a file and return its address; Python's own `mmap` would keep a copy of the descriptor.

    A mapping for reading is private: before Linux 6.7, and in gVisor, a sealed file cannot be mapped otherwise. Its
    pages are shared nevertheless.
    """
    kind = mmap.MAP_SHARED if write else mmap.MAP_PRIVATE
    return syscall("mmap", 0, size, _PROT_READ_WRITE if write else _PROT_READ, kind, descriptor, 0)


def map_anonymous(size: int) -> int:
    """Map private memory and return its address."""
    return syscall("mmap", 0, size, _PROT_READ_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)


def make_read_only(address: int, size: int) -> None:
    """Make a mapping read-only."""
    syscall("mprotect", address, size, _PROT_READ)


def release(address: int, size: int) -> None:
    """Unmap memory."""
    syscall("munmap", address, size)


def view(address: int, size: int) -> memoryview:
    """Return a view of the bytes at an address; it must not be used once they are unmapped."""
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")
