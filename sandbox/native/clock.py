"""Remove the clock: the kernel's time pages are covered, and the cycle counter is disabled.

Reading the time usually makes no system call, so seccomp never sees it: the kernel's page of time values is mapped into
every process. Zeros in their place mean "no fast clock", so that reading the time becomes a system call again, which
the filter stops and names; the coarse clocks stay at 1970. Some libraries read a refusal as 1970 too, so a call that
asked for the time gives no values (`backend`).
"""

from __future__ import annotations

import mmap

from .libc import prctl, syscall

_SET_CYCLES, _FAULT = 26, 2
_FIXED = 0x10
_TIME_MAPPINGS = (b"[vvar]", b"[vvar_vclock]")


def find_time_pages() -> list[tuple[int, int]]:
    """Return address and size of the kernel's time pages."""
    pages = []
    with open("/proc/self/maps", "rb") as maps:
        for line in maps:
            if line.split()[-1] in _TIME_MAPPINGS:
                first, _, last = line.split()[0].partition(b"-")
                pages.append((int(first, 16), int(last, 16) - int(first, 16)))
    return pages


def cover_time() -> bool:
    """Cover the time pages for this process and its children; return False where this kernel does not allow it."""
    try:
        for address, size in find_time_pages():
            syscall("mmap", address, size, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED, -1, 0)
        prctl(_SET_CYCLES, _FAULT)
    except OSError:
        return False
    return True
