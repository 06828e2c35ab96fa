"""A forecast of how formulas would score, learnt from those that were scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .basis import MAX_LEADERS as MAX_LEADERS
    from .model import Leader as Leader, ScoredFormula as ScoredFormula, SurrogateModel as SurrogateModel
    from .sample_store import Samples as Samples
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "basis": "MAX_LEADERS",
            "model": "Leader ScoredFormula SurrogateModel",
            "sample_store": "Samples",
        },
    )
