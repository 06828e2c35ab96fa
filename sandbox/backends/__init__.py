"""Other walls than the native one: each an explicit choice, never a fallback for another.

A call in the native sandbox is a fork of a warm interpreter. Behind these walls each call starts an interpreter, which
takes about a second more. The result of a call is byte-identical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .bubblewrap import Bubblewrap as Bubblewrap
    from .choice import (
        BACKENDS as BACKENDS,
        UNSAFE as UNSAFE,
        UNSAFE_STAMP as UNSAFE_STAMP,
        NoIsolation as NoIsolation,
        find_backend as find_backend,
    )
    from .container import Container as Container
    from .guest import Guests as Guests
    from .gvisor import GVisor as GVisor
    from .launch import Wall as Wall
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "bubblewrap": "Bubblewrap",
            "choice": "BACKENDS NoIsolation UNSAFE UNSAFE_STAMP find_backend",
            "container": "Container",
            "guest": "Guests",
            "gvisor": "GVisor",
            "launch": "Wall",
        },
    )
