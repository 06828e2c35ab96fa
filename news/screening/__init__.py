"""Cleaning and judging of texts before a model reads them."""
