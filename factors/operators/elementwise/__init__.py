"""Operators of one value at a time."""
