"""Commands on models and their servers."""
