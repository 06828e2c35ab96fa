"""Plain facts of the record for people, which the command line prints and the browser shows."""
