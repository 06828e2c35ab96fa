"""How to install the optional packages; every room may import this module, and it imports none."""

from __future__ import annotations

__all__ = ["install_hint"]


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
