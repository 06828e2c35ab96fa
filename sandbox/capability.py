"""What this machine can do about code that nobody has read: each wall, what it means, and what to do where it is missing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .errors import SandboxError

if TYPE_CHECKING:
    from .native.escapes import Escape
    from .native.primitives import Primitive

__all__ = ["Status", "probe_sandbox"]


@dataclass(frozen=True)
class Status:
    """What was found.

    Attributes
    ----------
    available : bool
        Whether generated code may run here: every required primitive works, and no escape was open.
    primitives : tuple of Primitive
        What the boundary is made of.
    escapes : tuple of Escape
        Ways out that were tried in a real jail; empty where none could be built.
    problem, hint : str
        Why it is not available, and what to do; empty where it is.
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
    """Try every primitive, then build a real jail and try five ways out of it."""
    from .native.backend import Native
    from .native.escapes import try_escapes
    from .native.primitives import examine_primitives

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
