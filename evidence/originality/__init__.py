"""Is it new? What is known, how like it a factor is, and what it adds to the library."""
