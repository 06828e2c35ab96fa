"""The factor language and its engine: formulas in, panels of values out."""
