"""Where cached bytes lie."""
