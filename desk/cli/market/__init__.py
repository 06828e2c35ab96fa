"""Commands on prices."""
