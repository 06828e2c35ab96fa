"""The commands on the transparency log of a workspace."""
