"""The agents, one a file: what each asks, and what becomes of the answer."""
