"""The wall of bubblewrap: empty namespaces, no capability, a read-only root with only the interpreter."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import ClassVar

from ..backend import ENVIRONMENT
from ..errors import SandboxUnavailable
from ..native.syscalls import find_machine
from .launch import OPTIONS, InterpreterLaunch, find_interpreter, find_tool, read_program

_NAMESPACES = (
    "--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session",
    "--clearenv", "--uid", "65534", "--gid", "65534", "--hostname", "none",
)  # fmt: skip  # a table
_REFUSED_NAMES = (
    "accept accept4 acct add_key adjtimex bind bpf chmod chown chroot clock_adjtime clock_settime clone clone3 connect "
    "delete_module fanotify_init fanotify_mark fchmod fchmodat fchmodat2 fchown fchownat finit_module fork fsconfig "
    "fsmount fsopen fspick getpeername getsockname getsockopt init_module inotify_init inotify_init1 io_setup "
    "io_submit io_uring_enter io_uring_register io_uring_setup kcmp kexec_file_load kexec_load keyctl kill link linkat "
    "listen lookup_dcookie mbind migrate_pages mkdir mkdirat mknod mknodat mount mount_setattr move_mount move_pages "
    "mq_open msgget name_to_handle_at open_by_handle_at open_tree perf_event_open personality pidfd_getfd pidfd_open "
    "pidfd_send_signal pivot_root process_madvise process_vm_readv process_vm_writev ptrace quotactl quotactl_fd "
    "reboot recvfrom recvmmsg recvmsg rename renameat renameat2 request_key rmdir rt_sigqueueinfo rt_tgsigqueueinfo "
    "sched_setaffinity sched_setattr sched_setscheduler semget sendmmsg sendmsg sendto set_mempolicy setdomainname "
    "sethostname setns setpriority settimeofday setxattr shmat shmget socket socketpair swapoff swapon symlink "
    "symlinkat syslog tgkill tkill truncate umount2 unlink unlinkat unshare userfaultfd utimensat vfork vhangup"
)
REFUSED_CALLS = tuple(_REFUSED_NAMES.split())
"""Calls that are answered with "not permitted"; calls that an architecture lacks are left out."""
_LOAD, _IF_EQUAL, _IF_NOT_LESS, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _REFUSE, _NOT_PERMITTED = 0x7FFF0000, 0x80000000, 0x00050000, 1


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Start interpreters with `bwrap`: Linux, bubblewrap 0.8 or later, no root needed."""

    tool: str = "bwrap"
    name: ClassVar[str] = "bubblewrap"
    stamp: ClassVar[str] = ""
    hint: ClassVar[str] = "Install bubblewrap 0.8 or later, e.g.: apt install bubblewrap"

    def check(self) -> None:
        """Raise SandboxUnavailable where bwrap is missing."""
        find_tool(self.tool, self.hint)

    def launch(self) -> InterpreterLaunch:
        """Return how one interpreter is started, with a filter of system calls on a pipe."""
        reads, writes = os.pipe()
        os.write(writes, build_filter())
        os.close(writes)
        return InterpreterLaunch(self.build_command(reads), find_interpreter().paths, (reads,))

    def build_command(self, filter_descriptor: int) -> tuple[str, ...]:
        """Return the whole command line."""
        python = find_interpreter()
        binds = [("--ro-bind", place, place) for place in python.readable]
        links = [("--symlink", target, place) for place, target in python.links]
        variables = [("--setenv", name, value) for name, value in ENVIRONMENT.items()]
        words = [word for group in [*binds, *links, *variables] for word in group]
        return (
            find_tool(self.tool, self.hint), *_NAMESPACES, *words, "--chdir", "/", "--remount-ro", "/",
            "--seccomp", str(filter_descriptor),
            python.program, "-S", *OPTIONS, read_program(),
        )  # fmt: skip  # a table


def build_filter() -> bytes:
    """Return the filter as an array of `struct sock_filter`; a call of another architecture ends the process."""
    machine = find_machine()
    if machine is None:
        raise SandboxUnavailable("this machine's system calls are not known", field="architecture")
    lines = [(_LOAD, 0, 0, 4), (_IF_EQUAL, 1, 0, machine.audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    if machine.foreign is not None:
        lines += [(_IF_NOT_LESS, 0, 1, machine.foreign), (_RETURN, 0, 0, _KILL)]
    for name in REFUSED_CALLS:
        if name in machine.numbers:
            lines += [(_IF_EQUAL, 0, 1, machine.numbers[name]), (_RETURN, 0, 0, _REFUSE | _NOT_PERMITTED)]
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
