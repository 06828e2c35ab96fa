"""Many tests on the same days: what that costs, and what other rules would say."""
