"""Commands on texts."""
