"""The engine: compiled kernels over the distinct subtrees of a batch of formulas."""
