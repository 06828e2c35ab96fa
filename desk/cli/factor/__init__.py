"""Commands on formulas and Python factors."""
