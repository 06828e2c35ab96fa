"""The forms in which people have prices: how a table is written, laid out, dated and numbered."""
