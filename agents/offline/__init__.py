"""The offline researcher: a heuristic that answers the agents' prompts without a network, a key or a language model."""

from .researcher import DESCRIPTION, NAME, answer, researcher
from .steering import unheard

__all__ = ["DESCRIPTION", "NAME", "answer", "researcher", "unheard"]
