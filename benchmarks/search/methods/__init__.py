"""The ways to search, each asked the same: factors in an order of preference, for so many evaluations or CPU seconds."""
