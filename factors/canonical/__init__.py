"""The canonical form: formulas that are equal by algebra are one tree, whose hash is the id."""
