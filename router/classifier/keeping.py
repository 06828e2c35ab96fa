"""What was fitted on this machine, kept in a file: whole, with the digest of its numbers, or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...ledger.files import make_folder

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
_DIGEST_KEY = "digest"


def digest_arrays(arrays: Arrays) -> str:
    """Return the hash of all numbers, with their names, types and shapes."""
    told = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        told.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        told.update(np.ascontiguousarray(array).tobytes())
    return told.hexdigest()


def load_arrays(path: Path) -> Arrays | None:
    """Return what was kept; None where there is nothing, or its numbers are not those that were kept."""
    unusable = suppress(OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile)
    with unusable, np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files if name != _DIGEST_KEY}
        return arrays if str(held[_DIGEST_KEY]) == digest_arrays(arrays) else None
    return None


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Keep arrays whole or not at all; where nothing can be written they are made again the next time."""
    with suppress(OSError):
        make_folder(path.parent)
        told: dict[str, Any] = {**arrays, _DIGEST_KEY: np.array(digest_arrays(arrays))}
        handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **told)
            os.replace(part, path)
        finally:
            Path(part).unlink(missing_ok=True)  # what is left where the disk was full
