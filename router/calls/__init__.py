"""Calls of models: held against the caps, sent, charged, recorded, read."""
