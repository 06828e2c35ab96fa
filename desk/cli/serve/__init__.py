"""Commands that serve tools, and that manage their callers."""
