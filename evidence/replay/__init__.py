"""A verdict run again from the record alone."""
