"""Cleaning and judging of texts before anybody reads them."""
