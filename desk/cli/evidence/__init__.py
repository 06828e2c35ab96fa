"""Commands on a run's evidence."""
