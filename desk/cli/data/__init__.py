"""Commands on prices: from tickers to a panel, what a table is, and what looks wrong in it."""
