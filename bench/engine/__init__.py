"""How fast the factor engine is beside other engines; run as ``python -m bench.engine``."""
