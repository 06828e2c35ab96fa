"""A prompt as somebody else would have typed it: slips, case, chatter, the frame of a program. What is wanted stays the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

_OPENERS = (
    "Hi team, ", "hey, quick one: ", "Good morning! Hope you are well. ", "ok so ", "Sorry to bother you again - ",
    "Please help me with this: ", "Thanks for the last answer. Now: ", "(from my phone) ", "Bonjour, ", "fyi / ask: ",
    "hello hello ", "Dear all,\n\n", "One more thing: ", "Right, next one. ", "Hey there! Hope the week is going fine. ",
    "I have a question. ", "When you have a minute: ", "yo ", "Morning. Coffee is in, so here goes: ", "If I may: ",
    "Before the meeting, please: ", "Could you please do this for me? ", "Asking for a colleague: ", "Hallo zusammen, ",
)  # fmt: skip
_CLOSERS = (
    " Thanks!", " thx", " Much appreciated.", " No rush.", " Cheers, Anna", " (asap pls)", " Let me know.", " :)",
    " Best regards", " ...", " ty", " Thanks a lot in advance, and have a good weekend.", "\n\nKind regards\nM.", " pls",
    " Appreciate the help as always.", " Merci", " I owe you one.", " Take your time.", " Need it before noon.", " Ta.",
)  # fmt: skip
_FRAMES = (
    "You are a helpful assistant of a research desk.\n\n{}", "### Task\n{}\n### Answer", "User: {}\nAssistant:",
    "<task>{}</task>", "Answer in JSON.\n{}", "[INST] {} [/INST]", '{{"prompt": "{}"}}', "Q: {}\nA:",
    "Follow the instructions below carefully.\n---\n{}\n---", "context: none\nrequest: {}\nformat: free text",
    "You are an expert. Be brief and exact.\n\nUser message:\n{}", "<user>\n{}\n</user>\n<assistant>",
    "System: be concise.\nHuman: {}", "Input:\n{}\n\nOutput:", "```\n{}\n```", "BEGIN REQUEST\n{}\nEND REQUEST",
    "# Instruction\n\n{}\n\n# Response\n", '{{"role": "user", "content": "{}"}}', "Reply in English only.\n{}",
    "Think before you answer.\n\n{}\n\nReturn only the final answer.", "ticket 4711\nfrom: desk\nbody: {}",
    "|user| {} |end|", "Do not make things up. {}", "Here is a message from a user; handle it.\n>>> {}",
)  # fmt: skip
SLIP_SHARE = 0.06
"""Share of a text's longer words in which a letter is wrong, missing, doubled or exchanged."""
MIN_LETTERS_TO_SLIP = 4


def _typos(text: str, draw: random.Random, _: slice) -> str:
    return " ".join(
        _slip_letter(word, draw) if len(word) >= MIN_LETTERS_TO_SLIP and draw.random() < SLIP_SHARE else word
        for word in text.split(" ")
    )


def _slip_letter(word: str, draw: random.Random) -> str:
    at = draw.randrange(len(word) - 1)
    changed = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[: at + 1] + word[at:],
        word[:at] + draw.choice("abcdefghijklmnopqrstuvwxyz") + word[at + 1 :],
    )
    return draw.choice(changed)


def _case(text: str, draw: random.Random, _: slice) -> str:
    return draw.choice([str.lower, str.upper, str.title])(text)


def _chatter(text: str, draw: random.Random, of: slice) -> str:
    return f"{draw.choice(_OPENERS[of])}{text}{draw.choice(_CLOSERS[of])}"


def _wrapper(text: str, draw: random.Random, of: slice) -> str:
    return draw.choice(_FRAMES[of]).format(text)


NOISES: Mapping[str, Callable[[str, random.Random, slice], str]] = {
    "typos": _typos,
    "case": _case,
    "chatter": _chatter,
    "wrapper": _wrapper,
}


def add_noise(text: str, kind: str, seed: int, *, learned: bool) -> str:
    """Return a text with one kind of noise, the same for one seed.

    Half of the chatter and of the frames is for training (`learned`); robustness is measured with the other half.
    """
    of = slice(0, None, 2) if learned else slice(1, None, 2)
    return NOISES[kind](text, random.Random(f"{seed}/{kind}/{text}"), of)
