"""What to try next, from search-window scores alone."""
