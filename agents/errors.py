"""What can go wrong in the agents' room.

::

    AlphaloomError
    └── AgentError          something an agent did, or was given, is unusable
        ├── ToolRefused     an agent reached for a tool that it does not hold
        ├── OwnPartError    what a person brings along cannot be used
        ├── PromptError     a prompt file is missing or has no version
        ├── NodeTimedOut    a model did not answer within the time of a node
        ├── NoUsableReply   models answered, but nothing that can be used, and nothing was tested
        └── ResearchError   the offline researcher was asked for what it cannot read
"""

from __future__ import annotations

from ..router import AlphaloomError


class AgentError(AlphaloomError):
    """An agent did, or was given, something unusable."""

    code: str = "agent"


class ToolRefused(AgentError):
    """An agent reached for a tool that it does not hold."""

    code: str = "tool_refused"
    exit_code: int = 1


class OwnPartError(AgentError):
    """What a person brings along cannot be used."""

    code: str = "own_part"
    exit_code: int = 2


class PromptError(AgentError):
    """A prompt file is missing or has no version."""

    code: str = "prompt"


class NodeTimedOut(AgentError):
    """A model did not answer within the time of a node, however often it was asked."""

    code: str = "node_timeout"
    exit_code: int = 3


class NoUsableReply(AgentError):
    """Models answered, but with nothing that can be used, and nothing was tested: the search rests.

    `place` names the question by its role and key, `said` is what the router said of the replies.
    """

    code: str = "no_usable_reply"
    exit_code: int = 3

    def __init__(self, place: str, said: str) -> None:
        super().__init__(
            f"no model gave a reply that can be used, so nothing was tested: {said}", field="models.models",
            hint="Mend the model, or what serves it, then resume the run: it is asked anew.",
        )  # fmt: skip
        self.place, self.said = place, said


class ResearchError(AgentError):
    """The offline researcher was asked for what it cannot read."""

    code: str = "research"
