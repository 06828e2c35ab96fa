"""What can go wrong in the agents' room.

::

    AlphaloomError
    └── AgentError          something an agent did, or was given, is unusable; what is only told has a code (below)
        ├── NodeTimedOut    a model did not answer within the time of a node
        └── NoUsableReply   models answered, but nothing that can be used, and nothing was tested

Codes of the base: own_part (what a person brings along cannot be used), prompt (a prompt file is missing or has no version),
research (the offline researcher was asked for what it cannot read), tool_refused (an agent does not hold that tool).
"""

from __future__ import annotations

from ..router import AlphaloomError


class AgentError(AlphaloomError):
    """An agent did, or was given, something unusable."""

    code: str = "agent"


class NodeTimedOut(AgentError):
    """A model did not answer within the time of a node, however often it was asked."""

    code: str = "node_timeout"
    exit_code: int = 3


class NoUsableReply(AgentError):
    """Models answered, but with nothing that can be used, and nothing was tested: the search stops, to be resumed.

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
