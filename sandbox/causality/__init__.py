"""Whether code sees the future: the future is changed, and the past must not move."""
