"""How to install the optional packages, and one that two rooms load. Any room may import this; it imports no room."""

from __future__ import annotations

import warnings
from datetime import date
from typing import Any

__all__ = ["CalendarUnusable", "install_hint", "load_calendar", "load_calendars"]


class CalendarUnusable(Exception):
    """The sessions of an exchange cannot be had: why, what could be named, and how to install what is missing."""

    def __init__(self, why: str, allowed: str | None = None, install: str = "") -> None:
        super().__init__(why)
        self.why, self.allowed, self.install = why, allowed, install


def load_calendars(code: str) -> Any:
    """Return the package exchange-calendars, which knows an exchange.

    Raises
    ------
    CalendarUnusable
        It is not installed, or does not know the exchange.
    """
    import difflib

    try:
        import exchange_calendars
    except ImportError:
        why = "sessions of an exchange need the package exchange-calendars, which is not installed"
        raise CalendarUnusable(why, install=install_hint("calendars")) from None
    known = exchange_calendars.get_calendar_names(include_aliases=True)
    if code not in known:
        near = difflib.get_close_matches(code, known, n=3, cutoff=0.5) or ["XNYS", "XLON", "XTKS"]
        raise CalendarUnusable("this exchange is not known", f"a code of exchange-calendars, such as {', '.join(near)}")
    return exchange_calendars


def load_calendar(code: str, first: date, last: date) -> Any:
    """Return the calendar of an exchange from `first` to `last`: loading takes a second, whatever the number of days.

    Raises
    ------
    CalendarUnusable
        As `load_calendars`, or the exchange's sessions are not known for these days.
    """
    package = load_calendars(code)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # version 4.13 uses what pandas 3.1 calls deprecated
            return package.get_calendar(code, start=first, end=last)
    except ValueError as problem:
        why = f"its sessions are not known for these days: {str(problem).splitlines()[0]}"
        raise CalendarUnusable(why) from None


def install_hint(extra: str) -> str:
    """Return the command that installs an extra by its packages' names; Alphaloom itself is on no package index."""
    from importlib import metadata

    try:
        declared = metadata.requires("alphaloom") or []
    except metadata.PackageNotFoundError:  # a checkout on the path that was never installed
        declared = []
    split = [line.partition(";") for line in declared]
    names = [f"'{name.strip()}'" for name, _, marker in split if f'"{extra}"' in marker.replace("'", '"')]
    checkout = f"pip install '.[{extra}]'"
    return f"pip install {' '.join(names)} (in the checkout: {checkout})" if names else f"in the checkout: {checkout}"
