"""How fast the sandbox is, and what each of its walls stops; run as ``python -m bench.sandbox``."""
