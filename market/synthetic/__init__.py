"""Simulated markets with planted alphas, and real panels made null."""
