"""Markets that are simulated, with as much truth in them as is asked for."""
