"""No clock: what the kernel shows of the time without a system call is covered, and the counter of cycles is shut.

Reading the time usually makes no system call, so seccomp never sees it: the kernel's page of time values is mapped into
every process. Zeros in their place say "no fast clock here", so that reading the time becomes a system call again, which
the filter stops and names; the coarse clocks stand still in 1970. Libraries that take the
refusal for 1970 as well do not get away with it: a call that asked for the time gives no values (`backend`).
"""

from __future__ import annotations

import mmap

from .libc import prctl, syscall

_SET_CYCLES, _FAULT = 26, 2
_FIXED = 0x10
_TIME_MAPPINGS = (b"[vvar]", b"[vvar_vclock]")


def find_time_pages() -> list[tuple[int, int]]:
    """Return address and size of what the kernel shows of the time."""
    found = []
    with open("/proc/self/maps", "rb") as maps:
        for line in maps:
            if line.split()[-1] in _TIME_MAPPINGS:
                first, _, last = line.split()[0].partition(b"-")
                found.append((int(first, 16), int(last, 16) - int(first, 16)))
    return found


def cover_time() -> bool:
    """Cover the time for this process and its children; False where this kernel does not let itself be covered."""
    try:
        for address, size in find_time_pages():
            syscall("mmap", address, size, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED, -1, 0)
        prctl(_SET_CYCLES, _FAULT)
    except OSError:
        return False
    return True
