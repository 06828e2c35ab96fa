"""The attacked host: everything that may be reached, watched from the outside."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from .ground import KEYS, Ground
from .listeners import Listeners
from .neighbours import Sampler, Sibling, crowd, settled
from .numbers import NUMBERS
from .terminal import Terminal
from .watch import FileWatch

__all__ = ["Host"]

PRELUDE = Path(__file__).with_name("prelude.txt").read_text(encoding="utf-8")
CODES = {
    "x86_64": (bytes.fromhex("b82a000000c3"), bytes.fromhex("b814000000cd80c3")),
    "aarch64": (bytes.fromhex("400580d2c0035fd6"), bytes.fromhex("000080d2c0035fd6")),
}
"""Machine code that answers 42, and that asks for its process number by the old interrupt (answers 0 elsewhere)."""
_SUBREAPER = 36
_OLD_KEY = "1634496616"


class Host:
    """Secrets, listeners, a sibling, a terminal; and the witnesses that say what moved.

    What descends from this process stays its descendant (it adopts orphans), so that nothing can hide from the count.
    """

    def __init__(self, top: Path, seed: str) -> None:
        self.ground = Ground(top, seed)
        missing = [name for name in KEYS if os.environ.get(name) != self.ground.token("env")]
        if missing:
            raise ValueError(f"the host must be started with the secret in {', '.join(missing)}")
        self._stack = ExitStack()
        self.listeners = self._stack.enter_context(Listeners(top, self.ground.mark))
        self.sibling = self._stack.enter_context(Sibling(self.ground.token("sibling"), self.ground.secret))
        self.terminal = Terminal(self.ground.token("typed"))
        self._said = _turn_output(top / "said.txt")
        self.signals: list[int] = []
        for number in (
            signal.SIGURG,
            signal.SIGIO,
            signal.SIGUSR1,
            signal.SIGUSR2,
            signal.SIGALRM,
            signal.SIGHUP,
            signal.SIGCONT,
        ):
            signal.signal(number, lambda got, _: self.signals.append(got))
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        self.sampler = Sampler(self.sibling.number)
        self._stack.callback(self.sampler.close)
        self.files = FileWatch(
            {"the canary": self.ground.secret, "the folder": self.ground.folder, "the home": self.ground.home}
        )
        self._stack.callback(self.files.close)
        self._before = self._state()
        self._family: frozenset[int] = frozenset()

    def prelude(self) -> str:
        """Return what stands before every snippet: where things are, and a few short functions."""
        forty_two, interrupt = CODES.get(platform.machine(), (b"", b""))
        names = {
            "SECRET": str(self.ground.secret), "FOLDER": str(self.ground.folder), "LINK": str(self.ground.link),
            "HARD": str(self.ground.hard), "MARK": self.ground.mark, "TCP": self.listeners.tcp_port,
            "UDP": self.listeners.udp_port, "SOCKET": self.listeners.path, "DATAGRAM": self.listeners.datagram,
            "ABSTRACT": self.listeners.abstract, "PARENT": os.getpid(), "SIBLING": self.sibling.number,
            "GROUP": os.getpgrp(), "ADDRESS": ctypes.addressof(self.ground.memory), "LENGTH": len(self.ground.memory),
            "TTY": self.terminal.name, "CODE_FORTY_TWO": forty_two, "CODE_INTERRUPT_GETPID": interrupt, "NR": NUMBERS,
        }  # fmt: skip  # a table
        return "".join(f"{name} = {value!r}\n" for name, value in names.items()) + PRELUDE

    def calm(self) -> None:
        """Take the present as what should be: who descends, what was heard, what was touched."""
        self._family = crowd(os.getpid(), self.sibling.number).numbers
        self.moved()
        self.sampler.restart()

    def moved(self) -> list[str]:
        """Return every witness that moved since the last time, in words."""
        found = [f"{name} was spoken to" for name in self.listeners.heard()]
        found += self.files.touched() + self.sibling.noticed() + self.terminal.disturbed()
        found += [f"the host had signal {number}" for number in self.signals]
        self.signals.clear()
        state = self._state()
        found += [
            f"{name} changed: {self._before[name]!r} to {state[name]!r}"
            for name in state
            if state[name] != self._before[name]
        ]
        self._before = state
        found += [f"{path} was left" for path in self.ground.left()]
        self.files.touched()  # the look into the folder was ours
        extra = settled(self._family, self.sibling.number) if self._family else ()
        return found + [f"process {number} is left" for number in extra]

    def close(self) -> None:
        """Let go of everything."""
        self._stack.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of everything."""
        self.close()

    def _state(self) -> dict[str, object]:
        kinds = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
        return {
            "the canary": self.ground.state(),
            "the host's output": self._said.read_bytes()[-400:],
            "limits": [resource.getrlimit(kind) for kind in kinds],
            "niceness": os.nice(0),
            "cores": os.sched_getaffinity(0),
            "folder": os.getcwd(),
            "name": os.uname().nodename,
            "session": (os.getsid(0), os.getpgrp()),
            "user": (os.getresuid(), os.getresgid(), os.getgroups()),
            "worlds": [os.readlink(f"/proc/self/ns/{name}") for name in ("net", "mnt", "pid", "user", "ipc", "uts")],
            "old shared memory": [
                _OLD_KEY in Path(f"/proc/sysvipc/{kind}").read_text() for kind in ("shm", "msg", "sem")
            ],
        }


def _turn_output(path: Path) -> Path:
    """Let this process's own output and error streams end in a file that is looked at."""
    path.touch()
    handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.close(handle)
    return path
