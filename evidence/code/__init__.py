"""Values of formulas and of Python factors: the one by the engine, the other in the sandbox."""
