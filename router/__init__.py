"""Which model answers what, at what price; every call typed, capped, recorded and validated."""

from __future__ import annotations

from ..ledger import AlphaloomError
from .calls.backend import load_litellm
from .calls.task import Message, Reply, Task
from .config import ModelBudget, ModelSettings, RouterConfig
from .errors import (
    AccessRefused,
    BudgetEnded,
    Confidential,
    ConfidentialWaits,
    ModelFailed,
    NoModel,
    ReplyRefused,
    RequestRefused,
    RouterError,
)
from .router import Router
from .spend import Spend

__all__ = [
    "AccessRefused",
    "AlphaloomError",
    "BudgetEnded",
    "Confidential",
    "ConfidentialWaits",
    "Message",
    "ModelBudget",
    "ModelFailed",
    "ModelSettings",
    "NoModel",
    "Reply",
    "ReplyRefused",
    "RequestRefused",
    "Router",
    "RouterConfig",
    "RouterError",
    "Spend",
    "Task",
    "load_litellm",
]
