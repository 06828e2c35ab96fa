"""Python factors that the offline researcher knows, by the mechanisms that they speak of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from .mechanism import fill_skeleton

__all__ = ["Code", "codes_of"]


@dataclass(frozen=True)
class Code:
    """One Python factor: the mechanisms that it serves, what it measures, and its code with slots."""

    id: str
    of: tuple[str, ...]
    said: str
    code: str

    def drawn(self, rng: np.random.Generator) -> str:
        """Return the code with every slot drawn."""
        return fill_skeleton(self.code, (), rng)


@cache
def _codes() -> tuple[Code, ...]:
    rows: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "codes.yaml").read_text(encoding="utf-8"))
    return tuple(Code(**{**row, "of": tuple(row["of"])}) for row in rows)


def codes_of(mechanism: str) -> list[Code]:
    """Return the Python factors that serve a mechanism, in the order of their file."""
    return [code for code in _codes() if mechanism in code.of]
