"""What Alphaloom makes in a workspace is for its owner alone, whatever the umask is.

A group that shares a workspace makes its folder so that it hands its group on (`chmod 2770 FOLDER`); whatever is made below is
then open to that group too, and to no others. Folders and files that are there already keep their permissions.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_SHARED_BITS = stat.S_ISGID | stat.S_IWGRP


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, where they are missing."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    mode = stat.S_ISGID | 0o770 if _is_shared(folder.parent) else 0o700
    try:
        folder.mkdir(mode=mode)
    except FileExistsError:
        if not folder.is_dir():  # else another process was quicker
            raise
    else:
        folder.chmod(mode)


def make_file(path: Path) -> None:
    """Make an empty file where there is none, for a library that opens it by its path."""
    with suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.chmod(path, file_mode(path.parent))
        finally:
            os.close(handle)


def file_mode(folder: Path) -> int:
    """Return the permissions of a file that is made in a folder."""
    return 0o660 if _is_shared(folder) else 0o600


def _is_shared(folder: Path) -> bool:
    return folder.stat().st_mode & _SHARED_BITS == _SHARED_BITS
