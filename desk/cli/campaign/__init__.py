"""Commands that run, watch and review a campaign."""
