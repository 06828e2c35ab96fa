"""The agents: ideas, formulas and their critique, in rounds; what they see, and what they may call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .attendance import Attendance as Attendance
    from .config import AgentsConfig as AgentsConfig
    from .errors import AgentError as AgentError
    from .graph import State as State, run_graph as run_graph
    from .interruption import silence_interruption as silence_interruption
    from .models import Models as Models
    from .own.own import Own as Own, OwnAgent as OwnAgent, View as View
    from .own.steer import Steer as Steer
    from .prompt import load_prompt as load_prompt
    from .protocols import (
        AgentJournal as AgentJournal,
        Asker as Asker,
        ProgressHook as ProgressHook,
        SearchContext as SearchContext,
        ToolSession as ToolSession,
        Toolset as Toolset,
    )
    from .unusable_replies import (
        QUESTION_WORDS as QUESTION_WORDS,
        describe_unusable_replies as describe_unusable_replies,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "attendance": "Attendance",
            "config": "AgentsConfig",
            "errors": "AgentError",
            "graph": "State run_graph",
            "interruption": "silence_interruption",
            "models": "Models",
            "own.own": "Own OwnAgent View",
            "own.steer": "Steer",
            "prompt": "load_prompt",
            "protocols": "AgentJournal Asker ProgressHook SearchContext ToolSession Toolset",
            "unusable_replies": "QUESTION_WORDS describe_unusable_replies",
        },
    )
