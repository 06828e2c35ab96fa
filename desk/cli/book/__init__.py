"""The commands on paper books."""
