"""The desk in a browser: what waits for a person, and everything they need to decide on it."""

from .app import Desk, build_app
from .sessions import Sessions

__all__ = ["Desk", "Sessions", "build_app"]
