"""What can go wrong in the agents' room.

::

    AlphaloomError
    └── AgentError          an agent's input or action is unusable; errors that nobody catches have a code (below)
        ├── NodeTimedOut    a model did not answer within the time of a node
        └── NoUsableReply   models answered, but no reply could be used, and nothing was tested

Codes of the base: own_part (a person's own file or agent cannot be used), prompt (a prompt file is missing or has no
version), research (the offline researcher cannot read the prompt), tool_refused (an agent does not hold that tool).
"""

from __future__ import annotations

from ..router import AlphaloomError


class AgentError(AlphaloomError):
    """An agent's input or action is unusable."""

    code: str = "agent"


class NodeTimedOut(AgentError):
    """A model did not answer within the time of a node, after all retries."""

    code: str = "node_timeout"
    exit_code: int = 3


class NoUsableReply(AgentError):
    """Models answered, but no reply could be used, and nothing was tested: the search stops and can be resumed.

    `place` names the question by role and key; `said` is the router's description of the replies.
    """

    code: str = "no_usable_reply"
    exit_code: int = 3

    def __init__(self, place: str, said: str) -> None:
        super().__init__(
            f"no model gave a reply that can be used, so nothing was tested: {said}",
            field="models.models",
            hint="Mend the model, or what serves it, then resume the run: it is asked anew.",
        )
        self.place, self.said = place, said
