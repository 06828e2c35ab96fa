"""The grammar that a reply is held to: sentences are drawn from its text, and each must fit the schema."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from alphaloom.agents.schemas import Candidates, Critique, Ideas
from alphaloom.factors import decoding_grammar, parse
from alphaloom.router import RouterError
from alphaloom.router.calls.reply_grammar import (
    ReplyShape,
    bound_schema,
    build_choice_grammar,
    build_reply_grammar,
    build_schema_grammar,
    measure_longest_reply,
)

FIELDS, GROUPS = ("close", "volume", "returns"), ("sector",)
FORMULAS = decoding_grammar(FIELDS, GROUPS, depth=4)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{\d+,\d+\}|[()|?]|\w+')
LETTERS = {"narrow": "a {}[]:,", "character": ("a", "é", "漢", "😀"), "escape": ('\\"', "\\n")}


class Kinds(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=2, max_length=5)
    side: Literal["buy", 'se"ll', 3]
    day: int = Field(ge=1, le=9)
    size: int
    lots: int = Field(ge=5)
    delay: int = Field(ge=0, le=5_000)
    share: float
    odds: float = Field(gt=0, lt=1)
    sure: bool | None
    tags: list[str] = Field(min_length=2, max_length=4)


class Drawer:
    """Draws sentences of a grammar as the exporter writes it: literals, classes, groups, counts, alternatives."""

    def __init__(self, grammar: str, seed: int) -> None:
        lines = (line.split(" ::= ", 1) for line in grammar.splitlines())
        self.rules = {name: TOKEN.findall(body) for name, body in lines}
        self.random = random.Random(seed)

    def draw(self, rule: str = "root") -> str:
        if rule in LETTERS:
            return self.random.choice(LETTERS[rule])
        return self._alternatives(iter([*self.rules[rule], ")"]))

    def _alternatives(self, tokens: Iterator[str]) -> str:
        """Draw one of the alternatives up to the parenthesis that closes them; all are read."""
        found: list[list[list[str]]] = [[]]
        level: list[str] = []
        depth = 0
        for token in tokens:
            if token == ")" and not depth:
                break
            depth += {"(": 1, ")": -1}.get(token, 0)
            level.append(token)
            if depth:
                continue
            if token == "|":
                found.append([])
            elif token == "?" or token[0] == "{":
                found[-1][-1] += level
            else:
                found[-1].append(level)
            level = []
        return "".join(self._item(item) for item in self.random.choice(found))

    def _item(self, item: list[str]) -> str:
        least, most = 1, 1
        if item[-1] == "?":
            least, most, item = 0, 1, item[:-1]
        elif item[-1][0] == "{" and len(item) > 1:
            (least, most), item = map(int, item[-1][1:-1].split(",")), item[:-1]
        return "".join(self._once(item) for _ in range(self.random.choice((least, most))))

    def _once(self, item: list[str]) -> str:
        if item[0] == "(":
            return self._alternatives(iter(item[1:]))
        if item[0].startswith('"'):
            return re.sub(r"\\(.)", r"\1", item[0][1:-1])
        if item[0][0] == "[":
            return str(self.random.randint(int(item[0][1]), int(item[0][3])))
        return self.draw(item[0])


SHAPES = {
    "ideas": ReplyShape(Ideas, 3, {"Hypothesis.fields": build_choice_grammar(FIELDS)}),
    "candidates": ReplyShape(Candidates, 2, {"Candidate.text": FORMULAS}),
    "critique": ReplyShape(Critique),
    "kinds": ReplyShape(Kinds),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("tokens", [300, 4_000])
def test_each_sentence_fits_and_leaves_room(name: str, tokens: int) -> None:
    shape = SHAPES[name]
    grammar = build_reply_grammar(shape, tokens)
    for seed in range(60):
        text = Drawer(grammar, seed).draw()
        reply = shape.schema.model_validate_json(text)
        own = [candidate.text for candidate in getattr(reply, "candidates", [])]  # may be longer than is reckoned
        assert len(text.encode()) - sum(map(len, own)) <= 3 * tokens
        for each in getattr(reply, "candidates", []):
            assert parse(each.text, fields=FIELDS, groups=GROUPS)
        for each in getattr(reply, "hypotheses", []):
            assert {*each.fields} <= {*FIELDS}


def test_what_was_asked_for_is_the_most_that_is_said() -> None:
    drawn = [Drawer(build_reply_grammar(SHAPES["ideas"], 4_000), seed).draw() for seed in range(20)]
    assert {len(Ideas.model_validate_json(text).hypotheses) for text in drawn} == {1, 3}


def test_a_bound_that_leaves_room_stays() -> None:
    schema = Critique.model_json_schema()
    assert measure_longest_reply(bound_schema(schema, 10**9)) == measure_longest_reply(schema)
    assert measure_longest_reply(bound_schema(schema, 3_000)) <= 3_000 < measure_longest_reply(schema)


class Nested(BaseModel):
    inner: list[Nested] = []


class Mapped(BaseModel):
    shares: dict[str, float]


@pytest.mark.parametrize(("schema", "said"), [(Nested, "holds itself"), (Mapped, "may hold any key")])
def test_what_need_not_end_gets_no_grammar(schema: type[BaseModel], said: str) -> None:
    assert build_schema_grammar(schema, 100) == ""
    with pytest.raises(RouterError, match=said):
        build_reply_grammar(ReplyShape(schema), 100)


class Told(BaseModel):
    text: str = Field(min_length=3)
    short: str = Field(max_length=20)


WORDS = {
    "in Latin letters": "Momentum, measured over a year, fades. ",
    "with what they lack": "It 'fades' — as “Müller” says — by Σ ≥ 2, or more. ",
    "in Chinese": "动量效应会逐渐减弱",
    "in pictures": "📈",
}


def matching(grammar: str, rule: str = "root") -> str:
    """Return a grammar without rules in itself as a pattern of Python's."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
    token = re.compile(TOKEN.pattern + "| ")
    literal = re.compile(r'"((?:[^"\\]|\\.)*)"')

    def one(found: re.Match[str]) -> str:
        if quoted := literal.fullmatch(found[0]):
            return "(?:" + re.escape(re.sub(r"\\(.)", r"\1", quoted[1])) + ")"
        return f"(?:{token.sub(one, rules[found[0]])})" if found[0] in rules else found[0].strip()

    return token.sub(one, rules[rule])


@pytest.mark.parametrize("tokens", [150, 300, 4_000])
@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_a_reply_ends_in_bytes_whatever_its_letters(words: str, tokens: int) -> None:
    form = re.compile(matching(build_reply_grammar(ReplyShape(Told), tokens)))
    counts = sorted({int(1.3**power) for power in range(36)})
    texts = [f'{{"text": "{words * count}...", "short": "x"}}' for count in counts if count * len(words) < 4 * tokens]
    lengths = [len(text.encode()) for text in texts if form.fullmatch(text)]
    assert lengths[-1] <= 3 * tokens < len(texts[-1].encode())
    assert lengths[-1] >= min(8_000, 3 * tokens) / 5, "there is room to say something"


@pytest.mark.parametrize("tokens", [300, 4_000])
def test_code_has_lines_and_quotes_and_prose_has_none(tokens: int) -> None:
    code, prose = 'def f(x):\\n    return x["close"]\\n'.replace('"', '\\"'), "It fades. " * 12
    shape = ReplyShape(Told, lines=frozenset({"Told.text"}))
    form = matching(build_reply_grammar(shape, tokens))
    assert re.fullmatch(form, f'{{"text": "{code * (tokens // 300)}", "short": "x"}}')
    assert re.fullmatch(form, f'{{"text": "{prose}", "short": "x"}}')
    assert not re.fullmatch(
        matching(build_reply_grammar(ReplyShape(Told), tokens)), f'{{"text": "{code}", "short": "x"}}'
    )


def test_only_a_class_is_repeated_often_in_a_text() -> None:
    """With a large vocabulary xgrammar takes seconds a token for any other, and errs at 129 wide characters or more."""
    rules = build_reply_grammar(ReplyShape(Ideas), 4_000)
    assert {name for name, most in re.findall(r"(\w+)\{\d+,(\d+)\}", rules) if int(most) > 20} <= {
        "narrow",
        "character",
    }
    assert max(int(most) for most in re.findall(r"character\{\d+,(\d+)\}", rules)) <= 128


class Mine(BaseModel):
    size: int


class Yours(BaseModel):
    model_config = ConfigDict(title="Mine")  # as if a class of this name held one of another module

    mine: Mine


def test_records_of_one_name_keep_their_own_rules() -> None:
    assert Yours.model_json_schema()["title"] == "Mine"
    form = matching(build_reply_grammar(ReplyShape(Yours), 400))
    assert re.fullmatch(form, '{"mine": {"size": 12}}')


def test_a_rule_of_a_text_that_is_written_twice_is_refused() -> None:
    twice = 'root ::= letter\nletter ::= "a"\nletter ::= "b"\n'
    with pytest.raises(RouterError, match="letter is written twice"):
        build_reply_grammar(ReplyShape(Told, texts={"Told.text": twice}), 400)
