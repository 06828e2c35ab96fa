import json

import pytest

from alphaloom.ledger import AlphaloomError, RunLocked, SettingsError, UnknownRun, WorkspaceError, errors


def test_an_error_reads_as_one_sentence_with_what_to_do() -> None:
    error = AlphaloomError("too many", field="budget", got=5, allowed="1 to 3", hint="Ask for fewer.")
    assert str(error) == "budget: too many (got 5); allowed: 1 to 3\nAsk for fewer."


def test_an_error_without_a_message_says_its_code() -> None:
    assert str(RunLocked()) == "run locked"


def test_what_the_message_already_says_is_not_said_twice() -> None:
    assert str(AlphaloomError("no field clse here", field="clse", got="clse")) == "no field clse here"


@pytest.mark.parametrize("got", [object(), {1, 2}, float("nan"), ("a", b"b"), {"x": float("inf")}, None])
def test_the_record_is_always_json(got: object) -> None:
    body = json.loads(json.dumps(AlphaloomError("m", got=got, allowed=["x"]).record(), allow_nan=False))
    assert set(body) == {"code", "field", "got", "allowed", "hint", "message"}


def test_long_values_are_cut() -> None:
    assert len(str(AlphaloomError("m", got="x" * 10_000))) < 300


def test_one_mistake_gives_its_field_to_the_error() -> None:
    error = SettingsError("m", mistakes=[errors.Mistake("a.b", "wrong", 3, got=1, allowed="0")])
    assert (error.field, error.got, error.allowed) == ("a.b", 1, "0")


def test_exit_codes_are_those_of_the_command_line() -> None:
    assert [kind.exit_code for kind in (AlphaloomError, SettingsError, UnknownRun, WorkspaceError, RunLocked)] == [
        *[2] * 4,
        1,
    ]


def test_the_tree_at_the_top_of_the_module_names_every_error() -> None:
    tree = errors.__doc__ or ""
    leaves = [name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)]
    assert all(name in tree for name in leaves)
