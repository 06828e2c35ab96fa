"""End a search that a person interrupts without a word of Python's."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["silence_interruption"]


@contextmanager
def silence_interruption() -> Iterator[None]:
    """Let an interruption end a search without a word of Python's.

    litellm makes the call of a model in a thread and awaits it in the loop, and the file of checkpoints answers from a
    thread of its own: what is interrupted in between is dropped, as it must be, and Python would tell a user's terminal
    of a call that nobody awaits and of a thread that answers a closed loop.
    """
    told = threading.excepthook

    def tell(failed: threading.ExceptHookArgs) -> None:
        if not (isinstance(failed.exc_value, RuntimeError) and "loop is closed" in str(failed.exc_value)):
            told(failed)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        threading.excepthook = tell
        try:
            yield
        finally:
            threading.excepthook = told
