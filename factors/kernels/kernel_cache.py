"""The decorator of every kernel: compiled at its first call, with machine code cached on disk if possible."""

from __future__ import annotations

import contextlib
import dis
import functools
import hashlib
import pickle
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

FOLDERS = (Path(__file__).parent, Path(__file__).parents[1] / "operators")
_COMPILING = threading.RLock()
CACHE_READ_ERRORS = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
)
"""Errors from reading a truncated or overwritten cache file."""


@functools.cache
def find_cache_folder() -> str:
    """Return the folder of machine code, named by a digest of all sources of kernels.

    Numba checks only the file of the kernel itself: after a change of a helper or a constant in another file it would
    load the old machine code. So every kernel, helper and constant of the engine is in `FOLDERS`.
    """
    import numba
    from platformdirs import user_cache_path

    config: Any = numba.config  # reads NUMBA_CACHE_DIR
    digest = _digest_sources(path for folder in FOLDERS for path in folder.rglob("*.py"))
    return str(Path(config.CACHE_DIR or user_cache_path("alphaloom")) / "kernels" / digest)


@functools.cache
def _name_subfolder(folder: Path) -> str:
    """Return the name of the cache of a folder's kernels: its sources name it, which may use each other's constants.

    Numba would name it by its path, and every checkout and environment would compile the same kernels again.
    """
    return f"{folder.name}_{_digest_sources(folder.glob('*.py'))}"


def _digest_sources(paths: Iterable[Path]) -> str:
    sources = sorted(paths)
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in sources)).hexdigest()[:16]


def describe_processor() -> str:
    """Return what machine code depends on besides its sources: the processor and its features, numba and Python."""
    import sys

    import numba

    binding: Any = import_module("llvmlite.binding")
    features = hashlib.sha256(binding.get_host_cpu_features().flatten().encode()).hexdigest()[:16]
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{binding.get_host_cpu_name()} {features} numba {numba.__version__} python {version}"


class Kernel:
    """A function of arrays that becomes machine code when it is first called.

    Declaring is free: numba is imported, and kernels that this one calls are compiled, at the first call.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        """Run the machine code without the interpreter lock."""
        return (self._compiled or self.compiled())(*args)

    def compiled(self) -> Callable[..., Any]:
        """Return the machine code, compiled or loaded at the first call."""
        with _COMPILING:
            if self._compiled is None:
                self._compiled = _compile(self._bind_kernels())
        return self._compiled

    def _bind_kernels(self) -> Callable[..., Any]:
        """Return the function with compiled kernels in the place of the declarations that it calls, as numba needs."""
        names = self._function.__globals__
        instructions = dis.get_instructions(self._function)
        loaded = {instruction.argval for instruction in instructions if instruction.opname == "LOAD_GLOBAL"}
        for name in sorted(loaded):
            if isinstance(names.get(name), Kernel):
                names[name] = names[name].compiled()
        return self._function


def kernel(function: Function) -> Function:
    """Declare a kernel: a function of arrays and numbers that numba can compile."""
    return cast(Function, Kernel(function))


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that compiles itself for the types of its arguments, and caches the result on disk."""
    import numba

    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    config: Any = numba.config
    previous_folder, config.CACHE_DIR = config.CACHE_DIR, find_cache_folder()
    try:
        compiled._cache = _open_cache(function)
        _tolerate_disk_errors(compiled)
    except RuntimeError:  # no writable folder: compile in each process
        pass
    finally:
        config.CACHE_DIR = previous_folder
    return cast(Callable[..., Any], compiled)


def _open_cache(function: Callable[..., Any]) -> Any:
    """Return numba's cache of a kernel, in a folder that all checkouts with the same sources share.

    Raises
    ------
    RuntimeError
        If no folder can be written.
    """
    from numba.core import caching

    class Locator(caching.UserProvidedCacheLocator):
        @classmethod
        def get_suitable_cache_subpath(cls, py_file: str) -> str:
            return _name_subfolder(Path(py_file).resolve().parent)

    class Implementation(caching.CompileResultCacheImpl):
        """Stores machine code where `Locator` says, and nowhere else."""

    Implementation._locator_classes = [Locator]

    class KernelCache(caching.FunctionCache):
        _impl_class = Implementation

    opened: Any = KernelCache  # numba declares no types
    return opened(function)


def _tolerate_disk_errors(compiled: Any) -> None:
    """Let a kernel run although its machine code cannot be written, or the cached code cannot be read.

    A full disk fails the last writes, and a crashed machine may leave truncated files.
    """
    cache = compiled._cache
    load, save = cache.load_overload, cache.save_overload

    def load_if_possible(*overload: Any) -> Any:
        try:
            return load(*overload)
        except CACHE_READ_ERRORS:
            return None

    def save_if_possible(*overload: Any) -> None:
        with contextlib.suppress(OSError):
            try:
                save(*overload)
            except CACHE_READ_ERRORS:
                cache.flush()
                save(*overload)

    cache.load_overload, cache.save_overload = load_if_possible, save_if_possible
