"""The walls by name, and the words for what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

__all__ = ["LAYERS", "LayerName", "PrimitiveMissing", "name_primitive"]

LayerName = Literal["namespaces", "limits", "landlock", "seccomp", "clock"]
LAYERS: tuple[LayerName, ...] = get_args(LayerName)


class PrimitiveMissing(OSError):
    """A primitive that the kernel did not grant; `primitive` names it."""

    def __init__(self, primitive: str, error: OSError) -> None:
        super().__init__(error.errno, error.strerror)
        self.primitive = primitive

    def __str__(self) -> str:
        """Return the primitive and what the kernel said."""
        return f"{self.primitive}: {self.strerror}"


@contextmanager
def name_primitive(primitive: str) -> Iterator[None]:
    """Name the primitive in what the kernel refuses meanwhile."""
    try:
        yield
    except OSError as error:
        raise PrimitiveMissing(primitive, error) from error
