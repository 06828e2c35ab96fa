"""The offline researcher: a heuristic that answers the agents' prompts without a network, a key or a language model."""

from .researcher import OFFLINE_DESCRIPTION, OFFLINE_MODEL_NAME, answer_offline, make_researcher
from .steering import describe_unmatched

__all__ = ["OFFLINE_DESCRIPTION", "OFFLINE_MODEL_NAME", "answer_offline", "describe_unmatched", "make_researcher"]
