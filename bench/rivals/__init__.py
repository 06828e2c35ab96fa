"""Other engines, each a process of its own that computes formulas given as JSON trees; none imports alphaloom."""
