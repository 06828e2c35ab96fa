"""A forecast of how formulas would score, learnt from those that were scored."""
