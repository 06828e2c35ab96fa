"""Formulas and operators in words: for a person, for a model, for the documentation."""
