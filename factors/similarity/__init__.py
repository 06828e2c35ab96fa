"""How alike two formulas are, by their trees."""
