"""Files that stand beside the prices: who was in the universe, what was known of a symbol, and what it is called."""
