"""What a prompt wants and how hard it is, from its text alone, in under a millisecond and without a network.

`model.Classifier` reads; it is not imported here, since it brings numpy and the room is imported by all that ask a model.
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
