"""The pages on paper books: what each holds and orders, how far it is from its limits, what was refused."""

from .details import load_positions, load_refusals
from .orders import cancel, load_orders, stream_orders
from .overview import load_book, load_books
from .stress import load_stress
from .trading_state import order

__all__ = [
    "cancel",
    "load_book",
    "load_books",
    "load_orders",
    "load_positions",
    "load_refusals",
    "load_stress",
    "order",
    "stream_orders",
]
