"""The pages on paper books: what each holds, how far it is from its limits, what was refused, and people's orders."""

from .details import load_positions, load_refusals
from .orders import order
from .overview import load_book, load_books
from .stress import load_stress

__all__ = ["load_book", "load_books", "load_positions", "load_refusals", "load_stress", "order"]
