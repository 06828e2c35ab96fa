"""One session of a paper book: its step as a pure function, its orders, and what was filled of them."""
