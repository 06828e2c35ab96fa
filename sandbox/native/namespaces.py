"""Namespaces of a worker: no user, no network, no other process, no file.

The worker runs in its own user, network, process, IPC, host name and mount namespaces, on an empty read-only root. Each
call gets its own process, IPC and network namespaces below that. None of it needs root: a user namespace gives the
rights for the others, limited to it. Root becomes nobody first, so that the result is the same for root and others.
"""

from __future__ import annotations

import ctypes
import errno
import os

from .libc import name_primitive, prctl, syscall

FLAGS = {
    "user": 0x10000000,
    "network": 0x40000000,
    "process": 0x20000000,
    "IPC": 0x08000000,
    "host name": 0x04000000,
    "mount": 0x00020000,
}
NOBODY_ID = 65534

_PER_CALL = ("IPC", "network")
_DUMPABLE = 4
_PRIVATE, _DETACH, _TMPFS = 0x4000 | 0x40000, 2, 0x1 | 0x2 | 0x4 | 0x8
"""Mount flags: recursively private; detach; read-only, no set-user-id, no devices, no execution."""


def fork_apart() -> int:
    """Fork the first process of a new process namespace, with an IPC and a network namespace of its own; once only."""
    unshare("process")
    pid = os.fork()
    if pid == 0:
        unshare(*_PER_CALL)
    return pid


def unshare(*names: str) -> None:
    """Leave the namespaces of these names for new ones, one by one, so that an error names the refused one.

    Raises
    ------
    PrimitiveMissing
        The kernel refused one; `primitive` names it.
    """
    for name in names:
        with name_primitive(f"{name} namespace"):
            syscall("unshare", FLAGS[name])


def become_nobody() -> None:
    """Give up root, where this process is root, and with it the ownership of root's files and processes."""
    if os.geteuid() == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY_ID, NOBODY_ID, NOBODY_ID)
            os.setresuid(NOBODY_ID, NOBODY_ID, NOBODY_ID)
        except PermissionError:  # a root without rights, as in some containers
            return


def isolate() -> None:
    """Move this process and its future children into namespaces of their own, with an empty root.

    The first child is the first process of the new process namespace; the caller must continue in it.
    """
    enter_user()
    unshare(*(name for name in FLAGS if name != "user"))
    _forbid_nesting()


def enter_user() -> None:
    """Become nobody in a new user namespace, with all rights over the namespaces created inside it."""
    user, group = os.geteuid(), os.getegid()
    prctl(_DUMPABLE, 1)  # a change of user makes /proc/self unwritable
    unshare("user")
    with name_primitive("user namespace"):
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{NOBODY_ID} {user} 1")
        _write("/proc/self/gid_map", f"{NOBODY_ID} {group} 1")


def empty_root() -> None:
    """Replace the root by an empty read-only file system."""
    here = ctypes.create_string_buffer(b".")
    with name_primitive("mount namespace"):
        _mount("none", "/", "", _PRIVATE)
        _mount("jail", "/proc", "tmpfs", _TMPFS)
        os.chdir("/proc")
        syscall("pivot_root", ctypes.addressof(here), ctypes.addressof(here))
        syscall("umount2", ctypes.addressof(here), _DETACH)
        os.chdir("/")


def _forbid_nesting() -> None:
    try:
        _write("/proc/sys/user/max_user_namespaces", "0")
    except OSError as error:  # read-only in many containers; seccomp forbids it as well
        if error.errno not in (errno.EROFS, errno.EACCES, errno.ENOENT):
            raise


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    texts = [ctypes.create_string_buffer(text.encode()) for text in (source, target, kind)]
    syscall("mount", *(ctypes.addressof(text) for text in texts), flags, 0)
