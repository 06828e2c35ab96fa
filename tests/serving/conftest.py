"""No test of this room has a network; a ledger and tasks for the router that asks through a gateway."""

from ..router.conftest import ledger, no_network, task

__all__ = ["ledger", "no_network", "task"]
