"""What a person brings along: formulas, hypotheses, pages, an agent."""
