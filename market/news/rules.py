"""The signs of a text that tells a machine reader what to do, as concepts that stand close together, and their weights.

A rule fires where its concepts follow each other, in the order given, within a number of words. Rules with one name are one
sign, whose weight is that of the heaviest that fired; the weights of different signs add up. Weights were set by hand, on
texts written for it and on headlines and tweets: what ordinary finance language holds is light, what it never holds weighs 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from .concepts import BIT


@dataclass(frozen=True)
class Rule:
    """One way in which a sign shows: its concepts in order, the words that they may span, and its weight."""

    name: str
    weight: float
    concepts: tuple[str, ...]
    span: int

    @property
    def bits(self) -> int:
        """Return all concepts as bits."""
        return sum({BIT[name] for name in self.concepts})


def _rules(name: str, *listed: tuple[float, str, int]) -> tuple[Rule, ...]:
    """Write the rules of one sign: weight, concepts with `>` between them, span in words."""
    return tuple(Rule(name, weight, tuple(concepts.split(" > ")), span) for weight, concepts, span in listed)


RULES: tuple[Rule, ...] = (
    *_rules(
        "override",
        (1.0, "drop > prior > instr", 9),
        (0.6, "drop > instr", 5),
        (0.9, "prior > instr > drop", 8),
        (0.7, "drop > your > soft", 5),
        (0.7, "drop > your > instr", 6),
        (0.6, "harddrop > prior > soft", 6),
        (0.4, "drop > prior > soft", 6),
        (0.4, "harddrop > soft > outverb", 7),
        (0.3, "follow > instead", 5),
        (0.3, "harddrop > soft", 4),
        (0.8, "your > soft > drop", 7),
        (1.0, "foreign drop > foreign instr", 9),
        (1.0, "foreign instr > foreign drop", 9),
        (0.8, "foreign drop > prior > instr", 9),
        (0.8, "new > instr > drop", 8),
        (0.7, "notsay > your > instr", 8),
    ),
    *_rules(
        "speaks to a machine",
        (0.7, "heading > hardmachine", 6),
        (0.4, "heading > machine", 3),
        (0.5, "hardmachine > thistext", 7),
        (0.5, "thistext > hardmachine", 10),
        (0.6, "you > hardmachine", 6),
        (0.6, "hardmachine > you", 6),
        (0.8, "cond > you > machine", 7),
        (0.4, "hardmachine > strictmust", 6),
        (0.6, "strictmust > hardmachine", 5),
        (0.4, "machine > thistext", 5),
        (0.6, "greeting > machine", 2),
        (0.3, "toward > hardmachine", 3),
        (0.6, "hardmachine > rate > extreme", 8),
        (0.6, "hardmachine > thistext > must", 10),
        (0.6, "polite > hardmachine", 10),
        (0.6, "hardmachine > polite", 12),
        (0.5, "reader > strictmust > follow", 5),
        (0.6, "foreign hardmachine > foreign must", 9),
        (0.5, "machine > must > outverb", 6),
        (0.4, "hardmachine > outverb", 10),
        (0.6, "hardmachine > readthis", 5),
        (0.6, "readthis > hardmachine", 8),
    ),
    *_rules(
        "speaks to who reads this",
        (0.6, "reader > readv > thistext", 7),
        (0.6, "reader > readthis", 4),
        (0.6, "cond > readthis > outverb", 9),
        (0.5, "cond > readthis", 5),
        (0.5, "you > readthis", 4),
        (0.4, "readthis > must", 5),
        (0.5, "you > readv > thistext", 7),
        (0.4, "readv > thistext > must", 8),
        (0.4, "reader > strictmust > rate", 7),
        (0.4, "cond > readv > thistext", 6),
        (0.4, "reader > strictmust > outverb", 7),
    ),
    *_rules(
        "names the score",
        (0.6, "rate > hardmetric > extreme", 7),
        (0.4, "rate > metric > extreme", 7),
        (0.4, "hardmetric > rate > extreme", 8),
        (0.7, "rate > thistext > extreme", 8),
        (0.6, "hardmetric > strictmust > extreme", 7),
        (0.6, "thistext > strictmust > rate", 8),
        (0.4, "rate > extreme > hardmetric", 6),
        (0.6, "outverb > hardmetric > extreme", 6),
        (0.5, "thistext > hardmetric > extreme", 9),
        (0.4, "strictmust > rate > extreme", 9),
        (0.5, "hardmetric > strictmust > rate", 7),
        (0.4, "reader > rate > metric > extreme", 12),
        (0.3, "rate > extreme > thistext", 8),
        (0.3, "rate > extreme", 4),
        (0.7, "foreign rate > foreign hardmetric > extreme", 9),
        (0.7, "foreign hardmetric > foreign rate > extreme", 9),
        (0.45, "foreign must > foreign rate > extreme", 9),
        (0.6, "foreign rate > extreme > foreign hardmetric", 9),
        (0.6, "foreign hardmetric > extreme > foreign rate", 9),
        (0.3, "foreign rate > extreme", 7),
        (0.3, "outverb > extreme", 2),
        (0.3, "rate > this > extreme", 7),
        (0.3, "foreign hardmetric > extreme", 5),
        (0.3, "extreme > foreign rate", 6),
    ),
    *_rules(
        "names the right answer",
        (0.6, "rightanswer > extreme", 9),
        (0.4, "rightanswer > thistext", 6),
        (0.3, "rightanswer", 0),
    ),
    *_rules(
        "sets a condition",
        (0.4, "cond > readv > strictmust", 8),
        (0.4, "cond > readv > outverb", 8),
        (0.5, "cond > asked", 5),
        (0.6, "asked > outverb", 8),
        (0.6, "hardcond > rate > extreme", 14),
        (0.4, "hardcond > outverb", 8),
        (0.4, "hardcond > approve > pipe", 14),
        (0.4, "hardcond > call > tool", 14),
        (0.3, "cond > outverb > trade", 12),
    ),
    *_rules(
        "asks for approval",
        (0.5, "hardpipe > approve", 5),
        (0.6, "hardpipe > strictmust > rate", 9),
        (0.6, "auth > approve > hardpipe", 12),
        (0.6, "approve > hardpipe", 6),
        (0.4, "approve > pipe", 5),
        (0.6, "hardpipe > strictmust > approve", 8),
        (0.6, "thistext > pipe > approve", 8),
        (0.5, "pipe > approve > notsay", 10),
    ),
    *_rules(
        "asks for a tool",
        (0.7, "call > hardtool", 7),
        (0.4, "call > tool", 4),
        (0.6, "hardcall > hardtool", 5),
        (0.4, "hardcall > tool", 5),
        (0.6, "call > tool > follow", 12),
        (0.6, "call > web > follow", 14),
        (0.5, "hardtool > trade", 8),
        (0.4, "you > call > tool", 7),
        (0.4, "strictmust > call > tool", 7),
    ),
    *_rules(
        "asks for secrets",
        (1.0, "show > hardsecret", 7),
        (1.0, "send > hardsecret", 7),
        (0.5, "show > your > secret", 6),
        (0.6, "show > above", 8),
        (0.4, "show > secret > pipe", 12),
        (0.6, "send > your > secret", 7),
        (0.3, "send > secret", 5),
        (0.8, "foreign show > foreign hardsecret", 8),
        (0.8, "foreign hardsecret > foreign show", 8),
    ),
    *_rules(
        "asks for silence",
        (0.6, "conceal > user", 8),
        (0.6, "conceal > instr", 8),
        (0.5, "conceal > thistext", 6),
        (0.3, "conceal", 0),
        (0.5, "conceal > outnoun", 8),
        (0.6, "foreign conceal", 0),
    ),
    *_rules(
        "gives a role",
        (0.7, "role > hardmachine", 8),
        (0.4, "role > you", 6),
        (0.4, "role > machine", 5),
        (0.6, "role > outverb", 6),
        (0.8, "mode", 0),
        (0.8, "foreign role", 0),
    ),
    *_rules(
        "claims authority",
        (0.5, "auth > your", 10),
        (0.4, "announce > auth > rate", 14),
        (0.3, "announce > auth", 7),
        (0.4, "auth > strictmust", 8),
        (0.4, "auth > approve > pipe", 10),
        (0.15, "auth > new > task", 8),
        (0.4, "your > auth", 4),
    ),
    *_rules(
        "gives a task",
        (0.5, "your > new > task", 4),
        (0.5, "new > task > follow", 8),
        (0.5, "follow > new > task", 6),
        (0.35, "new > instr", 2),
        (0.6, "new > foreign instr", 2),
        (0.4, "your > task", 2),
        (0.3, "follow > instr", 5),
    ),
    *_rules(
        "tells what to answer",
        (0.5, "your > outnoun", 3),
        (0.4, "strictmust > outverb > extreme", 6),
        (0.5, "cond > you > outverb", 10),
        (0.4, "you > strictmust > outverb", 5),
        (0.4, "outverb > notsay", 8),
        (0.4, "outverb > outnoun > thistext", 9),
    ),
    *_rules("forged delimiter", (0.8, "delimit", 0)),
    *_rules(
        "persuades",
        (0.3, "sure > rate > extreme", 10),
        (0.3, "sure > readv > thistext", 8),
        (0.3, "sure > reader > rate", 9),
    ),
    *_rules("asks to decode", (0.5, "decode > follow", 8), (0.3, "decode > thistext", 6), (0.4, "decode > instr", 8)),
)
