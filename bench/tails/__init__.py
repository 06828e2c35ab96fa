"""Measure how often the gate would call a worthless factor significant, far into the tail."""
