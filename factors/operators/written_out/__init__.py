"""Operators that are formulas of others."""
