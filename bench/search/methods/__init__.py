"""The ways to search: each returns factors in order of preference, for some evaluations or CPU seconds."""
