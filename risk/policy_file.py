"""The policy of a workspace: a file that a person keeps, beside the ledger and outside every campaign file."""

from __future__ import annotations

import os
from pathlib import Path

from ..ledger import read_settings
from .policy import Policy

POLICY_FILE = "policy.yaml"


def read_policy(workspace: Path) -> Policy:
    """Return the policy of a workspace; the shipped one where it has no file.

    Raises
    ------
    SettingsError
        With all mistakes of the file.
    """
    file = workspace / POLICY_FILE
    return read_settings(file, Policy) if os.path.lexists(file) else Policy()  # a link to nothing is an error
