"""One factor on one window: labels, ranks, long-short, costs and what it is exposed to."""
