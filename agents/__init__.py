"""The agents: ideas, formulas and their critique, in rounds; what they see, and what they may call."""

from .config import AgentsConfig
from .errors import AgentError
from .graph import run_graph
from .models import Models
from .own.own import Own, OwnAgent, View
from .own.steer import Steer
from .prompt import load_prompt
from .protocols import AgentJournal, Asker, ProgressHook, SearchContext, ToolSession, Toolset

__all__ = [
    "AgentError",
    "AgentJournal",
    "AgentsConfig",
    "Asker",
    "Models",
    "Own",
    "OwnAgent",
    "ProgressHook",
    "SearchContext",
    "Steer",
    "ToolSession",
    "Toolset",
    "View",
    "load_prompt",
    "run_graph",
]
