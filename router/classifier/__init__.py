"""What a prompt wants and how hard it is, from its text alone, in under a millisecond and without a network.

`model.Classifier` reads; it is not imported here, since it brings numpy and the room is imported by all that ask a model.
"""

from __future__ import annotations

from .reading import INTENTS, PromptReading

__all__ = ["INTENTS", "PromptReading"]
