"""The pages on the library: how every known factor does over time, one with its evidence, and what a person decides."""

from .decisions import decide
from .entry import load_entry
from .listing import load_library

__all__ = ["decide", "load_entry", "load_library"]
