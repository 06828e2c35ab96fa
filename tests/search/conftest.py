"""Workspaces with an evaluation service on a small market."""

from ..evidence.conftest import lab, ledger, planted

__all__ = ["lab", "ledger", "planted"]
