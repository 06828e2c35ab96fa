"""The desk in a browser: what waits for a person, and everything they need to decide on it."""

from .access import Sessions
from .app import Desk, build_app

__all__ = ["Desk", "Sessions", "build_app"]
