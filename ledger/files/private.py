"""Folders and files of a workspace are private to their owner, whatever the umask is.

A group shares a workspace by making its folder with the setgid bit and group write permission (`chmod 2770 FOLDER`);
everything created below is then open to that group too. Existing folders and files keep their permissions.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_SHARED_BITS = stat.S_ISGID | stat.S_IWGRP


def make_folder(folder: Path) -> None:
    """Create a folder, and those above it, where they are missing."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    mode = stat.S_ISGID | 0o770 if _is_shared(folder.parent) else 0o700
    try:
        folder.mkdir(mode=mode)
    except FileExistsError:
        if not folder.is_dir():  # otherwise another process has created it meanwhile
            raise
    else:
        folder.chmod(mode)


def make_file(path: Path) -> None:
    """Create an empty private file unless one exists, for a library that opens it by its path."""
    with suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.chmod(path, file_mode(path.parent))
        finally:
            os.close(handle)


def file_mode(folder: Path) -> int:
    """Return the permissions of a new file in a folder."""
    return 0o660 if _is_shared(folder) else 0o600


def _is_shared(folder: Path) -> bool:
    return folder.stat().st_mode & _SHARED_BITS == _SHARED_BITS
