"""A terminal that belongs to the host: what is typed into it, and what it shows, is watched."""

from __future__ import annotations

import array
import fcntl
import os
import select
import termios

__all__ = ["Terminal"]


class Terminal:
    """A pair of terminal ends, of which the lower one becomes the host's own and its input."""

    def __init__(self, typed: str) -> None:
        self._upper, self._lower = os.openpty()
        self.name = os.ttyname(self._lower)
        os.setsid()
        fcntl.ioctl(self._lower, termios.TIOCSCTTY, 0)
        settings = termios.tcgetattr(self._lower)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(self._lower, termios.TCSANOW, settings)
        os.dup2(self._lower, 0)
        os.write(self._upper, f"{typed}\n".encode())
        select.select([self._lower], [], [], 1)
        self._waiting = self._input()

    def _input(self) -> int:
        count = array.array("i", [0])
        fcntl.ioctl(self._lower, termios.FIONREAD, count)
        return count[0]

    def disturbed(self) -> list[str]:
        """Return whether input came or went, and whether anything was shown."""
        found, waiting = [], self._input()
        if waiting != self._waiting:
            found.append(f"the terminal's input changed from {self._waiting} to {waiting} bytes")
            self._waiting = waiting
        if select.select([self._upper], [], [], 0)[0]:
            found.append(f"the terminal shows {os.read(self._upper, 100)!r}")
        return found
