"""Commands that serve, and on who may call."""
