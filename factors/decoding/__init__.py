"""Write the factor language as a grammar for decoding: a model that is held to it cannot write a formula that is refused.

`decoding_grammar` makes it from the tables that the parser reads: operators, unit rules, days and limits.
"""

from .export import FORMS, decoding_grammar

__all__ = ["FORMS", "decoding_grammar"]
