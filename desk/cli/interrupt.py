"""Ctrl-C on the command line: it is answered at once, and a second one ends the process."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread, current_thread, main_thread

from .failures import EXIT_INTERRUPTED

__all__ = ["answer_interrupts"]

SELF_REPORT_SECONDS = 0.3
"""A command that ends within this says so itself."""
DONE_BYTE = b"\0"
FIRST_NOTICE = "Ctrl-C: stopping when the step under way is done; what is on record is kept. Ctrl-C again ends at once."
SECOND_NOTICE = "Ctrl-C: ended at once; what is on record is kept."
SHOW_CURSOR = "\x1b[?25h"
"""Shows the cursor of a terminal again, which a live display hides."""


@contextmanager
def answer_interrupts() -> Iterator[None]:
    """While a command runs, answer Ctrl-C on standard error.

    Python's own handler waits for the main thread, which may wait for a thread that computes. Therefore a thread reads the
    descriptor into which the signal itself writes. What Ctrl-C does is left to whoever handles it.
    """
    if current_thread() is not main_thread():
        yield
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    thread = Thread(target=_watch, args=(heard,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(told, DONE_BYTE)
        thread.join()
        os.close(told)
        os.close(heard)


def _watch(heard: int) -> None:
    count = 0
    while (number := os.read(heard, 1)) not in (b"", DONE_BYTE):
        if number[0] != signal.SIGINT:
            continue
        left = _is_unhandled()  # asked at once: a server that has ended gives the handler back
        count += 1
        if count == 1 and not select.select([heard], [], [], SELF_REPORT_SECONDS)[0]:
            if left or sys.stderr.isatty():  # a client that ends a server reads no lines
                _write_notice(FIRST_NOTICE)
        elif count > 1 and left:
            _write_notice(SECOND_NOTICE)
            os._exit(EXIT_INTERRUPTED)


def _is_unhandled() -> bool:
    """Tell whether Ctrl-C is left to Python or asyncio; a server that handles it ends what it has started."""
    handler = signal.getsignal(signal.SIGINT)
    of_asyncio = isinstance(handler, partial) and getattr(handler.func, "__module__", "").startswith("asyncio.")
    return handler is signal.default_int_handler or of_asyncio


def _write_notice(text: str) -> None:
    """Write a line at once, whatever the main thread is writing."""
    shown = f"\r{SHOW_CURSOR}{text}\r\n" if sys.stderr.isatty() else f"{text}\n"
    with suppress(OSError, ValueError):  # nobody reads it, or a test has replaced the stream
        os.write(sys.stderr.fileno(), shown.encode())
