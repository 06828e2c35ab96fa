"""The kernel's own word on whether files were touched."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Mapping
from pathlib import Path

__all__ = ["FileWatch"]

_NOT_BLOCKING, _ALL = 0o4000, 0xFFF
_NAMES = {1: "read", 2: "written", 4: "its attributes changed", 8: "closed", 16: "closed", 32: "opened", 64: "moved",
          128: "moved in", 256: "made", 512: "removed", 1024: "removed", 2048: "moved"}  # fmt: skip  # a table


class FileWatch:
    """Inotify on some paths: every open, read, write, change of attributes."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle = libc.inotify_init1(_NOT_BLOCKING)
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self._names = {
            libc.inotify_add_watch(self._handle, os.fsencode(path), _ALL): name for name, path in paths.items()
        }
        if -1 in self._names:
            raise OSError(ctypes.get_errno(), "inotify cannot watch", str(paths))

    def touched(self) -> list[str]:
        """Return what was done to which path since the last time."""
        found: dict[str, None] = {}
        while True:
            try:
                text = os.read(self._handle, 1 << 16)
            except BlockingIOError:
                return list(found)
            at = 0
            while at < len(text):
                which, mask, _, length = struct.unpack_from("iIII", text, at)
                name = text[at + 16 : at + 16 + length].rstrip(b"\0").decode(errors="replace")
                at += 16 + length
                deed = next((word for bit, word in _NAMES.items() if mask & bit), hex(mask))
                found[f"{self._names.get(which, '?')}{' ' + name if name else ''} was {deed}"] = None

    def close(self) -> None:
        """Stop watching."""
        os.close(self._handle)
