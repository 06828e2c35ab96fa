"""Carry a formula from one language to another."""

from __future__ import annotations

from dataclasses import dataclass

from ..describe.render import render
from ..language.parse import parse
from .exporter import write_foreign
from .registry import OWN_DIALECT


@dataclass(frozen=True, slots=True)
class Translation:
    """A formula in another language.

    Attributes
    ----------
    text : str
        The formula.
    notes : tuple of str
        What differs from the original, for a person; empty where nothing does.
    """

    text: str
    notes: tuple[str, ...] = ()


def translate(text: str, source: str, target: str) -> Translation:
    """Carry a formula from one language to another.

    Parameters
    ----------
    text : str
        The formula.
    source, target : str
        Names of languages: ``alphaloom``, ``worldquant``, ``qlib``, ``alphaagent``, ``alphagen`` or ``factorminer``.

    Returns
    -------
    Translation
        The formula in the target language, with the meaning that it has in the source language, and notes.

    Raises
    ------
    ParseError
        Where the formula cannot be read, or the target cannot say it; the stage is then ``dialect``.
    """
    known = parse(text, dialect=source)
    if target == OWN_DIALECT:
        return Translation(render(known.root), known.warnings)
    written = write_foreign(known.root, target)
    return Translation(written.text, tuple(dict.fromkeys((*known.warnings, *written.notes))))
