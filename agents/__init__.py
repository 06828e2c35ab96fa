"""The agents: ideas, formulas and their critique, in rounds; what they see, and what they may call."""

from .config import AgentsConfig
from .errors import AgentError
from .graph import run_graph
from .models import Models
from .own.own import Own, OwnAgent, View
from .own.steer import Steer
from .prompt import load_prompt
from .protocols import Asker, Desk, Journal, Progress, ToolSession, Toolset

__all__ = [
    "AgentError",
    "AgentsConfig",
    "Asker",
    "Desk",
    "Journal",
    "Models",
    "Own",
    "OwnAgent",
    "Progress",
    "Steer",
    "ToolSession",
    "Toolset",
    "View",
    "load_prompt",
    "run_graph",
]
