"""A forecast of how formulas would score, learnt from those that were scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .candidate_pool import Samples as Samples
    from .gaussian_process import MAX_LEADERS as MAX_LEADERS, ScoredFormula as ScoredFormula
    from .model import Leader as Leader, SurrogateModel as SurrogateModel
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "gaussian_process": "MAX_LEADERS ScoredFormula",
            "candidate_pool": "Samples",
            "model": "Leader SurrogateModel",
        },
    )
