"""The commands on the risk gate and its policy."""
