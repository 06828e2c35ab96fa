"""The process that runs one call, and what crosses its boundary."""
