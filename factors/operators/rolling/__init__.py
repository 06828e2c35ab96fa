"""Operators over a window of days."""
