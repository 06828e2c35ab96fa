"""The acceptance gate: its steps, its tests and its verdicts."""
