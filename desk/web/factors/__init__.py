"""The pages on any scored factor: what is on record, what if, and two beside each other."""
