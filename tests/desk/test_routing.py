"""`alphaloom route`: one prompt or many, from text alone or with a role, and words for what is wrong."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.router.calls.prices import find_listing
from alphaloom.router.classifier import own_intents
from alphaloom.router.endpoints.discovery import PROVIDER_KEYS

Capture = pytest.CaptureFixture[str]
PARTS = {"intent", "difficulty", "tier", "model", "signals", "cost_usd", "alternatives", "reason", "first_tier"}
ROUTER = """
models:
  large: {model: a/large, tier: frontier, input_cost_per_mtok: 5.0, output_cost_per_mtok: 25.0}
  small: {model: hosted_vllm/small, place: local, api_base: "http://127.0.0.1:9/v1"}
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in an empty folder, without keys and without a server on this machine."""

    def refuse(*_: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for key in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.delenv(key, raising=False)


@pytest.fixture
def told(capsys: Capture) -> Callable[..., list[dict[str, Any]]]:
    def ask(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
        capsys.readouterr()
        assert run_command(["route", *arguments, "--json"]) == code
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return ask


def test_without_a_model_the_tier_is_told_all_the_same(told: Callable[..., Any], capsys: Capture) -> None:
    (one,) = told("Which field holds the traded volume?")
    assert set(one) == PARTS
    assert (one["intent"], one["tier"], one["model"], one["cost_usd"]) == ("data_lookup", "local", None, None)
    assert run_command(["route", "Which field holds the traded volume?"]) == 0
    assert "No model is set up" in capsys.readouterr().err


def test_a_key_is_enough(told: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    (hard,) = told("Find a causal mechanism for the momentum crash that nobody has written about.")
    (easy,) = told("Which field holds the traded volume?")
    assert (hard["model"], easy["model"]) == ("anthropic", "anthropic-small")
    assert hard["cost_usd"] > easy["cost_usd"] > 0
    assert "sk-secret" not in json.dumps([hard, easy])


def test_every_model_that_a_key_brings_has_a_price_and_a_context() -> None:
    for model in (name for names in PROVIDER_KEYS.values() for name in names):
        listing = find_listing(model)
        assert listing["input_cost_per_token"] > 0, model
        assert listing["max_input_tokens"] > 10_000, model


def test_a_file_of_prompts_is_answered_in_order(told: Callable[..., Any], tmp_path: Path) -> None:
    Path("router.yaml").write_text(ROUTER)
    lines: list[dict[str, Any]] = [
        {"prompt": "Which field holds the traded volume?", "label": {"difficulty": "low"}},
        {"prompt": "hm, this one", "role": "factor"},
        {"prompt": "Why did value and momentum crash together, and what would prove it?", "role": "critic"},
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    found = told("--file", "p.jsonl")
    assert [row["intent"] for row in found] == ["data_lookup", "code", "critique"]
    assert [row["model"] for row in (found[0], found[2])] == ["small", "large"]
    assert told("--file", "p.jsonl", "--confidential")[2]["model"] == "small"


def test_it_reads_standard_input_and_prints_for_people(
    told: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    Path("other.yaml").write_text(ROUTER)
    monkeypatch.setattr("sys.stdin", io.StringIO("Which field holds the traded volume?"))
    assert run_command(["route", "-", "--router", "other.yaml"]) == 0
    output = capsys.readouterr().out
    assert "data_lookup" in output
    assert "large (frontier, 0.0" in output


@pytest.mark.parametrize(
    ("words", "file", "said"),
    [
        ([], None, "give one prompt"),
        (["x", "--file", "p.jsonl"], "", "- to read standard input"),
        (["--file", "p.jsonl"], "\n \n", "p.jsonl holds no prompt"),
        (["  "], None, "is empty"),
        (["--file", "none.jsonl"], None, "cannot read none.jsonl"),
        (["--file", "p.jsonl"], '{"prompt": "a"}\n{"role": "x"}', "line 2 holds no prompt"),
        (["--file", "p.jsonl"], "[1]", "line 1 holds no prompt"),
        (["--file", "p.jsonl"], '{"prompt": "a", "rol": "idea"}', "line 1 has the key 'rol'; did you mean role?"),
        (["a", "--router", "none.yaml"], None, "none.yaml"),
    ],
)
def test_what_is_wrong_is_told(words: list[str], file: str | None, said: str, capsys: Capture) -> None:
    if file is not None:
        Path("p.jsonl").write_text(file)
    assert run_command(["route", *words]) == 2
    heard = capsys.readouterr()
    assert said in heard.err
    assert heard.out == "", "nothing is answered where a line is wrong"


@pytest.mark.integration
def test_an_intent_of_ones_own_is_told_and_how_well_its_examples_tell_it(
    told: Callable[..., Any], capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_intents, "find_cache", lambda _: tmp_path / "cache")
    words = ("the smile of", "skew in", "calendar arbitrage in", "the wings of", "what vega says of")
    examples = json.dumps([f"Plot {word} the vol surface" for word in words])
    Path("router.yaml").write_text(f"{ROUTER}routing: {{own_intents: {{surface: {{examples: {examples}}}}}}}\n")
    (one,) = told("plot the butterfly on the vol surface")
    assert (one["intent"], one["signals"]["own_intents"]) == (
        "surface",
        {"surface": one["signals"]["intents"]["surface"]},
    )
    Path("router.yaml").write_text(f"{ROUTER}routing: {{own_intents: {{surface: {{examples: [a, b, c]}}}}}}\n")
    assert run_command(["route", "plot it"]) == 2
    assert "routing.own_intents.surface.examples: 3 are too few" in capsys.readouterr().err
    unlike = json.dumps(["Mend it", "Which field?", "Why did it crash?", "Summarise this page", "Invent a signal"])
    Path("router.yaml").write_text(f"{ROUTER}routing: {{own_intents: {{surface: {{examples: {unlike}}}}}}}\n")
    assert run_command(["route", "plot it"]) == 0
    assert "of its examples are recognised when each is left out" in capsys.readouterr().err


def test_the_models_of_a_campaign_file_are_taken_and_a_file_that_is_none_is_told(
    told: Callable[..., Any], capsys: Capture
) -> None:
    Path("campaign.yaml").write_text("name: a\nmodels:\n  models: {mine: {model: offline/x, place: local}}\n")
    (one,) = told("Which field holds the traded volume?", "--router", "campaign.yaml")
    assert one["model"] == "mine"
    assert run_command(["route", "Which field?", "--router", "campaign.yaml"]) == 0
    assert "campaign.yaml is a campaign file" in capsys.readouterr().err
    assert run_command(["route", "Which field?", "--router", "none.yaml"]) == 2
    assert "models: {NAME: {model: PROVIDER/MODEL}}" in capsys.readouterr().err


def test_a_key_that_is_not_set_and_the_limit_are_told(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("router.yaml").write_text("models: {large: {model: anthropic/claude-opus-5-5, tier: frontier}}\n")
    words = ["route", "Find a causal mechanism for the momentum crash that nobody has written about."]
    said = []
    for key in ("", "sk-dummy"):
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        assert run_command(words) == 0
        said.append(capsys.readouterr().out)
    assert "large (its key ANTHROPIC_API_KEY is not set)" in said[0]
    assert "is not set" not in said[1]
    assert "that a small model fails; 15% is the limit)" in said[1]


def test_what_is_no_text_on_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    for held, how in ((b"\xff\xfe", "strict"), (b"\xff\xfe", "surrogateescape"), (b"a\0b", "strict")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(held), "utf-8", how))
        assert run_command(["route", "-"]) == 2
        assert "is no UTF-8 text" in capsys.readouterr().err


def test_a_word_that_nobody_has_heard_of_is_told(capsys: Capture) -> None:
    Path("router.yaml").write_text(f"{ROUTER}routing: {{intents: {{critiqe: frontier, code: local}}}}\n")
    Path("p.jsonl").write_text(
        '{"prompt": "Which field?", "role": "wizard"}\n{"prompt": "Mend it", "role": "factor"}\n'
    )
    assert run_command(["route", "--file", "p.jsonl"]) == 0
    intent, role = capsys.readouterr().err.splitlines()
    assert intent.startswith("routing.intents: no such intent is known: critiqe (did you mean critique?); known: ")
    assert role.startswith("no such role is known: wizard; known: idea, factor, ")


def test_a_line_too_long_is_refused_as_a_prompt_is(capsys: Capture) -> None:
    Path("p.jsonl").write_text(json.dumps({"prompt": "x" * 1_000_001}))
    assert run_command(["route", "--file", "p.jsonl"]) == 2
    assert "line 1 has more than 1,000,000 characters" in capsys.readouterr().err
