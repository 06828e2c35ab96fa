"""The commands that trade, and the one that stops all trading."""
