"""Formulas drawn from the language, and planted in synthetic markets."""
