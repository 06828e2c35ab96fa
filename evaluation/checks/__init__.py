"""Checks on what the service says: its power, its negative control, its verdicts run again."""
