"""Other walls than the native one: each an explicit choice, none ever taken in the place of another.

A call in the native sandbox is a fork of a warm interpreter. Behind these walls it is an interpreter that is started for
it, so a call takes about a second more. What a call means, and its bytes, are the same.
"""

from .bubblewrap import Bubblewrap
from .choice import BACKENDS, find_backend
from .container import Container
from .guest import Guests
from .gvisor import GVisor
from .launch import InterpreterLaunch, Wall
from .unsafe import UNSAFE, NoIsolation, Unsafe

__all__ = [
    "BACKENDS",
    "UNSAFE",
    "Bubblewrap",
    "Container",
    "GVisor",
    "Guests",
    "InterpreterLaunch",
    "NoIsolation",
    "Unsafe",
    "Wall",
    "find_backend",
]
