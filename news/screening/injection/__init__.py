"""Whether a text speaks to the machine that reads it."""
