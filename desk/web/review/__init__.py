"""What waits for a person: the inbox, and the pages on which a case, an alarm, a request or a text is decided."""

from . import blind, cases, seal, texts
from .cases import is_blind_for, refuse_changed, send_to_judge
from .inbox import read_waiting

__all__ = ["blind", "cases", "is_blind_for", "read_waiting", "refuse_changed", "seal", "send_to_judge", "texts"]
