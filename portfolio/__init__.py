"""Accepted factors combined and held: weights, trading rate, backtest and the sealed exam."""

from .blend import blend_values

__all__ = ["blend_values"]
