"""The wiring: the rooms in the order a factor meets them."""
