"""Commands on the library."""
