"""Other walls than the native one: each an explicit choice, none ever taken in the place of another.

A call in the native sandbox is a fork of a warm interpreter. Behind these walls it is an interpreter that is started for
it, so a call takes about a second more. What a call means, and its bytes, are the same.
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
