"""The agents: ideas, formulas and their critique, in rounds; what they see, and what they may call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .attendance import Attendance as Attendance
    from .config import (
        OFFLINE_MODEL_NAME as OFFLINE_MODEL_NAME,
        AgentsConfig as AgentsConfig,
        Models as Models,
        Steer as Steer,
    )
    from .errors import AgentError as AgentError
    from .graph import State as State, run_graph as run_graph, silence_interruption as silence_interruption
    from .own_parts import Own as Own, OwnAgent as OwnAgent, View as View
    from .prompt import load_prompt as load_prompt, read_shipped_pages as read_shipped_pages
    from .questions import QUESTION_WORDS as QUESTION_WORDS, describe_unusable_replies as describe_unusable_replies
    from .search_context import (
        SearchContext as SearchContext,
        Toolset as Toolset,
        draw_work_seed as draw_work_seed,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "attendance": "Attendance",
            "config": "OFFLINE_MODEL_NAME AgentsConfig Models Steer",
            "errors": "AgentError",
            "graph": "State run_graph silence_interruption",
            "questions": "QUESTION_WORDS describe_unusable_replies",
            "own_parts": "Own OwnAgent View",
            "prompt": "load_prompt read_shipped_pages",
            "search_context": "SearchContext Toolset draw_work_seed",
        },
    )
