"""Hold a context-free grammar, and write it in the notations that decoders read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ROOT = "root"

Alternative = tuple[str, ...]
"""Symbols in a row: the name of a rule, or a terminal in double quotes."""


def terminal(text: str) -> str:
    """Return the symbol of a fixed text."""
    return json.dumps(text)


def is_terminal(symbol: str) -> bool:
    """Tell whether a symbol is a fixed text."""
    return symbol.startswith('"')


@dataclass(frozen=True)
class GrammarRules:
    """A context-free grammar.

    Attributes
    ----------
    rules : mapping of str to alternatives
        What each name may be replaced by; `ROOT` is the start.
    """

    rules: Mapping[str, Sequence[Alternative]]

    def reachable(self) -> list[str]:
        """Return the names that the start leads to, in the order in which a reader meets them."""
        seen, waiting = [ROOT], [ROOT]
        while waiting:
            for alternative in self.rules[waiting.pop(0)]:
                new = [symbol for symbol in alternative if not is_terminal(symbol) and symbol not in seen]
                seen += dict.fromkeys(new)
                waiting += dict.fromkeys(new)
        return seen

    def ebnf(self) -> str:
        """Return the grammar as EBNF with ``::=`` and ``root``, which xgrammar, vLLM and llama.cpp read."""
        return self._written("{name} ::= {body}", ROOT)

    def lark(self) -> str:
        """Return the grammar in lark's notation with ``start``, which lark and llguidance read."""
        return self._written("{name}: {body}", "start")

    def _written(self, line: str, start: str) -> str:
        lines = []
        for name in self.reachable():
            body = " | ".join(" ".join(alternative) for alternative in self.rules[name])
            lines.append(line.format(name=start if name == ROOT else name, body=body))
        return "\n".join(lines) + "\n"
