"""What the forecasts of several runs on one panel stand on, kept once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from ...evidence import Window
from ...market import Panel
from .candidate_pool import CandidatePool
from .subsample import SubsampledPanel

__all__ = ["Sample", "Samples"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Looks at a panel, the sample of what could be written, and whose turn it is to ask them: tools answer on threads."""

    thin: SubsampledPanel
    population: CandidatePool
    turn: AbstractContextManager[Any] = field(default_factory=RLock)


class Samples:
    """Keeps a sample for each panel, window and set of fields.

    It hangs on no run. It takes 75 MB on a small panel, and more as scores ask for a larger part of the language; where
    two hundred callers have runs of their own, that is not to be had for each.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[Panel, Window, tuple[str, ...]], Sample] = {}
        self._turn = RLock()

    def sample(self, panel: Panel, window: Window, fields: Sequence[str]) -> Sample:
        """Return the sample of a panel's window and fields; the same for whoever asks."""
        key = panel, window, tuple(fields)
        with self._turn:
            if key not in self._kept:
                thin = SubsampledPanel(panel, window)
                self._kept[key] = Sample(thin, CandidatePool(thin, key[2]))
            return self._kept[key]
