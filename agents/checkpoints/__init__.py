"""Where the graph's state is kept."""
