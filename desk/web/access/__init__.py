"""Who may open a page of the desk, and what every request must pass."""

from .guards import REPORT_POLICY, Guards
from .login import LoginLimit, LoginPage, find_signer
from .sessions import Sessions

__all__ = ["REPORT_POLICY", "Guards", "LoginLimit", "LoginPage", "Sessions", "find_signer"]
