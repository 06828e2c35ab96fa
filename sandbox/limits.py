"""What one call may use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real

from .errors import BadInput

__all__ = ["Limits"]

_WALL_S, _MEMORY_MB = (0.001, 86_400.0), (16, 1 << 20)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may use; beyond it the call is ended.

    Attributes
    ----------
    wall_s : float
        Seconds by the wall clock, from the fork to the answer; 0.001 to 86,400, which is a day.
    memory_mb : int
        MiB of address space that the call may add to what the panel takes; 16 to 1,048,576, which is one TiB.

    Raises
    ------
    BadInput
        A limit that is no number, or that nothing could run under.
    """

    wall_s: float = 10.0
    memory_mb: int = 1024

    def __post_init__(self) -> None:
        """Refuse limits that nothing could run under, and those that the kernel cannot keep."""
        _check_bounds("wall_s", self.wall_s, Real, "a number of seconds", _WALL_S)
        _check_bounds("memory_mb", self.memory_mb, Integral, "a whole number of MiB", _MEMORY_MB)
        object.__setattr__(self, "wall_s", float(self.wall_s))
        object.__setattr__(self, "memory_mb", int(self.memory_mb))

    def times(self, patience: int) -> Limits:
        """Return the limits with so many times the seconds, but not more than may be asked for."""
        return self if patience == 1 else replace(self, wall_s=min(self.wall_s * patience, _WALL_S[1]))


def _check_bounds(name: str, value: object, kind: type, words: str, bounds: tuple[float, float]) -> None:
    least, most = bounds
    number = isinstance(value, kind) and not isinstance(value, bool)
    if not number or not least <= value <= most:  # type: ignore[operator]  # NaN fails, too
        raise BadInput(
            f"{name} is not a limit that can be kept", field=name, got=repr(value),
            allowed=f"{words} from {least:g} to {most:,}", hint=f"Give {name} a value between them.",
        )  # fmt: skip
