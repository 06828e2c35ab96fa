"""Retellings of real accounts, and what goes wrong in them: a wrong figure, a dropped reason, an invented cause."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from decimal import Decimal

from alphaloom.ledger.account import DecisionAccount

FIGURE = re.compile(r"(?<![\w./-])-?\d+(\.\d+)?(?![\w/-]|\.\w)")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
OTHER_WORDS = (
    (" got the verdict ", " received the verdict "), ("It was trial", "This was trial"), (" asked.", " were asked."),
    ("the threshold was", "against a threshold of"), (" on record ", " recorded "),
    (", limit ", " against a limit of "),
)  # fmt: skip  # a table
CLAUSES = (
    "because the market was illiquid", "since the portfolio manager disliked it", "due to a currency crisis in Asia",
    "owing to weak liquidity", "as a result of an earnings surprise", "because of a compliance complaint",
    "thanks to strong momentum in technology", "since the broker was offline", "so that the fund avoids losses",
    "because inflation rose", "driven by retail panic", "which was caused by weather", "after regulators intervened",
    "amid fears of a recession", "given the crowded trade", "in light of a lawsuit", "reflecting poor governance",
    "as the team lost confidence", "following a data breach", "under pressure from a client",
)  # fmt: skip  # a table
SENTENCES = (
    "The fund wanted to avoid a scandal.", "Weak demand in Japan hurt the idea.", "Traders had lost patience with it.",
    "A crash was feared.", "The chairman insisted.", "Liquidity dried up.", "Insiders sold heavily.",
    "The auditors complained.", "Interest rates climbed.", "It seemed too risky.", "The broker preferred another name.",
    "Clients withdrew money.", "It smelled of manipulation.", "Politics played a part.", "Everyone panicked.",
)  # fmt: skip  # a table
WORDS = ("narrowly", "deliberately", "illegally", "politically", "hastily", "secretly", "luckily", "wrongly")


def retell(account: DecisionAccount, draw: random.Random) -> list[str]:
    """Return sentences that say an account in other words: some left out, some figures rounded, in another order."""
    told = []
    for sentence in account.sentences:
        if not sentence.kept and (sentence.quoted or draw.random() < 0.4):
            continue
        text = sentence.text
        for ours, theirs in OTHER_WORDS:
            text = text.replace(ours, theirs) if draw.random() < 0.7 and not sentence.quoted else text
        told.append(FIGURE.sub(lambda match: _round(match[0], draw), text) if not sentence.quoted else text)
    draw.shuffle(told)
    return told


def _round(figure: str, draw: random.Random) -> str:
    """Return a figure as it is, or with fewer decimals and at least two digits other than leading zeros."""
    value = Decimal(figure)
    digits, decimals = len(value.as_tuple().digits), -int(value.as_tuple().exponent)
    fewest = max(0, decimals - digits + 2)
    if fewest >= decimals or draw.random() < 0.5:
        return figure
    rounded = round(value, draw.randint(fewest, decimals))
    return format(rounded, "f") if rounded else figure


def plant_wrong_figure(told: list[str], draw: random.Random) -> list[str]:
    """Return the sentences with one figure or day that is not that of the account."""
    places = [(at, match) for at, text in enumerate(told) for match in _list_figures(text)]
    at, match = draw.choice(places)
    wrong = draw.choice(
        [one for one in _list_wrong(match[0], [other[0] for _, other in places], draw) if one != match[0]]
    )
    text = told[at]
    return [*told[:at], text[: match.start()] + wrong + text[match.end() :], *told[at + 1 :]]


def _list_figures(text: str) -> Iterator[re.Match[str]]:
    if '"' not in text:
        yield from DAY.finditer(text)
        yield from FIGURE.finditer(text)


def _list_wrong(figure: str, others: list[str], draw: random.Random) -> list[str]:
    """Return figures that are wrong in the place of one: a digit, the size, the sign, or a figure of another place."""
    places = [place for place, letter in enumerate(figure) if letter.isdigit()]
    place = draw.choice(places)
    digit = draw.choice([letter for letter in "123456789" if letter != figure[place]])
    changed = figure[:place] + digit + figure[place + 1 :]
    if DAY.fullmatch(figure):
        return [changed, *(other for other in others if DAY.fullmatch(other) and other != figure)]
    value = Decimal(figure)
    wrong = [changed, format(value * 10, "f"), format(-value, "f"), format(value + 1, "f")]
    wrong += [other for other in others if not DAY.fullmatch(other)]
    return [one for one in wrong if DAY.fullmatch(one) is None and abs(Decimal(one) - value) > abs(value) / 50] or [
        changed
    ]


def plant_dropped_reason(account: DecisionAccount, told: list[str], draw: random.Random) -> list[str]:
    """Return the sentences without one refusal, failed step or verdict, or without the words that tell which."""
    kept = draw.choice([sentence.kept for sentence in account.sentences if sentence.kept])
    with_all = [at for at, text in enumerate(told) if all(word in text for word in kept)]
    if draw.random() < 0.5:
        return [text for at, text in enumerate(told) if at not in with_all]
    word = draw.choice(kept)
    return [text.replace(word, "").replace("  ", " ") if at in with_all else text for at, text in enumerate(told)]


def plant_cause(told: list[str], draw: random.Random) -> tuple[str, list[str]]:
    """Return a kind of invented cause, and the sentences with one.

    A clause, a sentence or a single word with words that no leaf has; or a clause of words of the account itself.
    """
    at = draw.randrange(len(told))
    kind = draw.choice(["clause", "sentence", "word", "clause of its own words"])
    if kind == "clause":
        changed = [told[at].removesuffix(".") + f", {draw.choice(CLAUSES)}."]
    elif kind == "clause of its own words":
        words = sorted({word for text in told for word in re.findall(r"\b[a-z]{4,}\b", text)})
        changed = [told[at].removesuffix(".") + f" because of {' '.join(draw.sample(words, 2))}."]
    elif kind == "sentence":
        changed = [told[at], draw.choice(SENTENCES)]
    else:
        first, _, rest = told[at].partition(" ")
        changed = [f"{first} {rest.removesuffix('.')} {draw.choice(WORDS)}."]
    return kind, [*told[:at], *changed, *told[at + 1 :]]
