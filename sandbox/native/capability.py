"""Examine what this machine can enforce: each primitive of the boundary is tried in a process of its own."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import SandboxError, SandboxUnavailable
from ..jail.bare_interpreter import build_command
from . import clock, landlock, namespaces, seccomp
from .libc import syscall
from .syscalls import MACHINES, find_machine

if TYPE_CHECKING:
    from .escapes import Escape

OTHER_BACKENDS_HINT = "Or choose another wall: backend='container', 'bubblewrap' or 'gvisor'."
_KERNEL_HINT = (
    f"Boot Linux 6.12 or later with Landlock among its security modules (lsm=landlock,...). {OTHER_BACKENDS_HINT}"
)
_NAMESPACE_HINT = (
    "Allow unprivileged user namespaces: sysctl user.max_user_namespaces=10000, "
    "kernel.unprivileged_userns_clone=1 (Debian), kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); "
    f"in Docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined. {OTHER_BACKENDS_HINT}"
)
_PRIMITIVES: dict[str, tuple[str, str]] = {
    "system": (
        "Linux on x86-64 or arm64, little-endian",
        "On macOS and Windows use backend='container' (Docker, Podman). On Linux there are also bubblewrap and gVisor.",
    ),
    "landlock": ("no file, no TCP port, no signal out, no abstract socket", _KERNEL_HINT),
    "seccomp": (
        "a dozen system calls; every other one is stopped and named",
        f"Boot Linux 5.0 or later. {OTHER_BACKENDS_HINT}",
    ),
    "memory files": ("panel and answer cross without a file", f"Boot Linux 3.17 or later. {OTHER_BACKENDS_HINT}"),
    "user namespace": ("nobody inside, and the right to build the other walls without root", _NAMESPACE_HINT),
    "network namespace": ("no network at all, not even the loopback", _NAMESPACE_HINT),
    "process namespace": ("no other process can be seen, and none is left behind", _NAMESPACE_HINT),
    "IPC namespace": ("no shared memory or queue of others", _NAMESPACE_HINT),
    "host name namespace": ("no name of this machine", _NAMESPACE_HINT),
    "mount namespace": ("an empty root: no file, no /proc, no device", _NAMESPACE_HINT),
    "clock": (
        "reading the time is a system call again, and refused",
        "This kernel seals its page of time values. Nothing gets out by it, but code may read the time.",
    ),
}
_OPTIONAL = {"clock"}


@dataclass(frozen=True, slots=True)
class Primitive:
    """One part of the boundary.

    Attributes
    ----------
    name : str
        Its name.
    works, required : bool
        Whether this machine has it, and whether nothing runs without it.
    found : str
        Its version, or the kernel's error.
    stops : str
        Its purpose.
    hint : str
        What to do where it is missing; empty where it works.
    """

    name: str
    works: bool
    required: bool
    found: str
    stops: str
    hint: str


@cache
def examine_primitives() -> tuple[Primitive, ...]:
    """Try every primitive in a process of its own, so that this process is not changed."""
    if find_machine() is None or platform.system() != "Linux" or sys.byteorder != "little":
        return (_make_primitive("system", False, f"{platform.system()} on {platform.machine()}"),)
    report = subprocess.run(
        build_command("native.capability", "print_report"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={},
        stdin=subprocess.DEVNULL,
    )
    if report.returncode:
        last = report.stderr.strip().rpartition("\n")[2]
        return (_make_primitive("system", False, last or "the examination did not end"),)
    results: dict[str, list[object]] = json.loads(report.stdout)
    return tuple(_make_primitive(name, bool(works), str(words)) for name, (works, words) in results.items())


def find_hint(name: str) -> str:
    """Return what to do where a primitive is missing."""
    return _PRIMITIVES.get(name, ("", "Ask: alphaloom sandbox status"))[1]


def unavailable_error(primitive: Primitive) -> SandboxUnavailable:
    """Return the error that names a missing primitive."""
    return SandboxUnavailable(
        f"this machine cannot contain code: {primitive.name} is missing ({primitive.found})",
        field=primitive.name,
        got=primitive.found,
        allowed=primitive.stops,
        hint=primitive.hint,
    )


@dataclass(frozen=True)
class Status:
    """Whether this machine can contain code, and why.

    Attributes
    ----------
    available : bool
        Whether generated code may run here: every required primitive works, and no escape was open.
    primitives : tuple of Primitive
        The parts of the boundary.
    escapes : tuple of Escape
        Escapes that were tried in a real jail; empty where none could be built.
    problem, hint : str
        Why code cannot run, and what to do; empty where it can.
    """

    available: bool
    primitives: tuple[Primitive, ...]
    escapes: tuple[Escape, ...]
    problem: str
    hint: str

    def record(self) -> dict[str, Any]:
        """Return the status as plain JSON."""
        return {**asdict(self), "backend": "native"}


def probe_sandbox() -> Status:
    """Try every primitive, then build a real jail and try five escapes from it."""
    from .backend import Native
    from .escapes import try_escapes

    primitives = examine_primitives()
    native = Native(tested=True)
    escapes: tuple[Escape, ...] = ()
    try:
        native.check()
        worker = native.start()
        try:
            escapes = tuple(try_escapes(worker))
        finally:
            worker.close()
    except SandboxError as error:
        return Status(False, primitives, escapes, error.message, error.hint)
    finally:
        native.close()
    open_ways = [escape.words for escape in escapes if not escape.contained]
    problem = "; ".join(open_ways)
    return Status(not open_ways, primitives, escapes, problem, "Choose another backend." if open_ways else "")


def _make_primitive(name: str, works: bool, words: str) -> Primitive:
    stops, remedy = _PRIMITIVES[name]
    return Primitive(name, works, name not in _OPTIONAL, words, stops, "" if works else remedy)


def print_report() -> None:
    """Try each primitive in a child and print the results as JSON."""
    results: dict[str, tuple[bool, str]] = {"system": (True, f"Linux {platform.release()} on {platform.machine()}")}
    for name, attempt in {
        "landlock": _try_landlock,
        "seccomp": _try_seccomp,
        "memory files": _try_memory,
        **{f"{name} namespace": _try_namespace(name) for name in namespaces.FLAGS},
        "clock": _try_clock,
    }.items():
        results[name] = _run_in_child(attempt)
    print(json.dumps(results))


def _run_in_child(attempt: Callable[[], str]) -> tuple[bool, str]:
    """Run an attempt in a child and return whether it worked, and its words."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(writes, seccomp.STATUS_FD)
            os.write(seccomp.STATUS_FD, f"+{attempt()}".encode())
        except OSError as error:
            os.write(seccomp.STATUS_FD, f"-{error.strerror}".encode())
        finally:
            os._exit(0)
    os.close(writes)
    with open(reads, "rb") as pipe:
        report = pipe.read().decode("utf-8", "replace")
    _, code = os.waitpid(pid, 0)
    return report.startswith("+"), report[1:] or f"the process ended with {code}"


def _try_landlock() -> str:
    abi = landlock.read_version()
    if abi < landlock.MIN_LANDLOCK_VERSION:
        raise OSError(errno.ENOSYS, f"version {abi}; needed: {landlock.MIN_LANDLOCK_VERSION} or later")
    syscall("prctl", 38, 1)
    landlock.restrict_process(abi)
    return f"version {abi}"


def _try_seccomp() -> str:
    machine = find_machine() or MACHINES["x86_64"]
    sizes = ctypes.create_string_buffer(6)
    syscall("seccomp", 3, 0, ctypes.addressof(sizes))
    if sizes.raw != b"\x50\x00\x18\x00\x40\x00":
        raise OSError(errno.ENOSYS, f"notices have another size: {sizes.raw.hex()}")
    syscall("prctl", 38, 1)
    os.close(seccomp.install_filter(seccomp.build_program(machine)))
    return "filters and notices"


def _try_memory() -> str:
    from . import shared_memory

    descriptor = shared_memory.create_file("probe", 4096)
    shared_memory.seal_whole(descriptor)
    os.pidfd_open(os.getpid())
    return "sealed"


def _try_namespace(name: str) -> Callable[[], str]:
    def attempt() -> str:
        namespaces.become_nobody()
        namespaces.enter_user()
        if name != "user":
            namespaces.unshare(name)
        if name == "mount":
            namespaces.empty_root()
        return "entered"

    return attempt


def _try_clock() -> str:
    if not clock.cover_time():
        raise OSError(errno.EPERM, "the kernel's time page is sealed")
    return "covered"
