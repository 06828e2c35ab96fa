"""Who may open a page of the desk, and what every request must pass."""

from .guards import REPORT_POLICY, Guards
from .login import LoginLimit, LoginPage, find_signer
from .own_name import give_name, load_name
from .sessions import Sessions

__all__ = [
    "REPORT_POLICY", "Guards", "LoginLimit", "LoginPage", "Sessions", "find_signer", "give_name", "load_name",
]  # fmt: skip  # a table
