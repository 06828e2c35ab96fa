"""Read files that a person names; only regular files are accepted.

Reading a pipe, a socket, a terminal or a file of the kernel can block or never end, so each is refused before a byte is
read.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO

MAX_GIVEN_BYTES = 64 << 20
"""Limit for files of settings, formulas, prompts or tokens; prices and news have limits of their own."""
_KERNEL_FOLDERS = (Path("/proc"), Path("/sys"))
_SPECIAL_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class NotRegular(OSError):
    """The path names a pipe, a socket, a device, a file of the kernel, or a file that is too large."""

    hint = "Name a regular file: write what the other one gives into a file first."

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(errno.EINVAL, what, str(path))


def open_given(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises
    ------
    OSError
        If it cannot be opened; `NotRegular` if it is no regular file. `strerror` holds the reason in words.
    """
    check_given(path)  # merely opening some devices has an effect
    handle = os.open(path, _OPEN_FLAGS)  # O_NONBLOCK: a pipe may have replaced the file meanwhile
    try:
        _refuse_irregular(path, os.fstat(handle))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_given(path: Path, most: int = MAX_GIVEN_BYTES) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes; raise as `open_given` does."""
    with open_given(path) as file:
        body = file.read(most + 1)
    if len(body) > most:
        raise NotRegular(path, f"the file is too large: at most {most:,} bytes are read")
    return body


def read_given_text(path: Path, encoding: str = "utf-8") -> str:
    """Return the text of a regular file with plain line ends; raise as `open_given` does, or `UnicodeDecodeError`."""
    return io.StringIO(read_given(path).decode(encoding), newline=None).read()


def check_given(path: Path) -> None:
    """Raise as `open_given` does, for a library that opens the file by its path."""
    _refuse_irregular(path, path.stat())


def _refuse_irregular(path: Path, status: os.stat_result) -> None:
    for is_kind, what in _SPECIAL_KINDS:
        if is_kind(status.st_mode):
            raise NotRegular(path, f"it is {what}, not a regular file")
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if any(root in path.resolve().parents for root in _KERNEL_FOLDERS):
        raise NotRegular(path, "it is a file of the kernel, not a regular file")
