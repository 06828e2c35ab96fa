"""What a search remembers of its formulas and hypotheses."""
