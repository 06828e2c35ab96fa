"""Operators over the names of one day."""
