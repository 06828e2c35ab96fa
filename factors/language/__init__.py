"""The language: its grammar, its tree, its types, and the proof that no formula sees the future."""
