"""The user interface: the command line, its progress, and the report."""

from .report.report import write_report

__all__ = ["write_report"]
