"""What the room hands out by name, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys


def said(code: str) -> list[str]:
    """Return the words that a fresh process prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_no_name_of_the_room_becomes_a_module_once_its_modules_are_loaded() -> None:
    code = """
import importlib, types
import alphaloom.factors as room
for module in set(room.LAZY_FACTOR_NAMES.values()):
    importlib.import_module(f"alphaloom.factors.{module}")
print("read", *[name for name in room.__all__ if isinstance(getattr(room, name), types.ModuleType)])
"""
    assert said(code) == ["read"]
