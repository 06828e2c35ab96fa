"""Values of formulas and of Python factors: the former by the engine, the latter in the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .computing import UNCONTAINED_CODE as UNCONTAINED_CODE, Computes as Computes, Computing as Computing
    from .contained import PYTHON_FOLDER as PYTHON_FOLDER, Contained as Contained, coded_column as coded_column
    from .retry import TimeSteps as TimeSteps
    from .sandbox_settings import (
        LazySandbox as LazySandbox,
        SandboxSettings as SandboxSettings,
        note_screening_seed as note_screening_seed,
        read_screening_seed as read_screening_seed,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "computing": "Computes Computing UNCONTAINED_CODE",
            "contained": "Contained PYTHON_FOLDER coded_column",
            "retry": "TimeSteps",
            "sandbox_settings": "LazySandbox SandboxSettings note_screening_seed read_screening_seed",
        },
    )
