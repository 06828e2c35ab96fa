"""Price files as tables, and all that is wrong in them."""
