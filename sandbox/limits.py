"""What one call may use."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import SandboxError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may use; beyond it the call is ended.

    Attributes
    ----------
    wall_s : float
        Seconds by the wall clock, from the fork to the answer.
    memory_mb : int
        MiB of address space that the call may add to what the panel takes.

    Raises
    ------
    SandboxError
        A limit that is not positive.
    """

    wall_s: float = 10.0
    memory_mb: int = 1024

    def __post_init__(self) -> None:
        """Refuse limits that nothing could run under."""
        for name, value, least in (("wall_s", self.wall_s, 0.001), ("memory_mb", self.memory_mb, 16)):
            if not value >= least:
                raise SandboxError(f"{name} is too small", field=name, got=value, allowed=f"{least} or more")
