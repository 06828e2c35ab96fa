"""The intent and difficulty of a prompt, from its text alone, in under a millisecond and without a network.

`model.Classifier` is not imported here: it needs numpy, and every process that asks a model imports this room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .own_intents import OwnClassifier as OwnClassifier
    from .prompt_reading import INTENTS as INTENTS, PromptReading as PromptReading
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "own_intents": "OwnClassifier",
            "prompt_reading": "INTENTS PromptReading",
        },
    )
