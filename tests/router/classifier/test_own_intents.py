"""Intents taught by examples: recognised in other words, harmless to ours, refused where they cannot be used."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.ledger import read_settings
from alphaloom.router import RouterConfig
from alphaloom.router.classifier import INTENTS, fit, own_intents
from alphaloom.router.classifier.model import Classifier
from alphaloom.router.classifier.own_intents import OwnClassifier
from alphaloom.router.classifier.training_prompts import read_examples, take_one_per_template
from alphaloom.router.errors import RouterError
from alphaloom.router.policy.decision import Decider, RoutingQuestion

HERE = Path(__file__).parent
NAMES = ("client_letter", "options_surface", "trade_compliance")
MODELS = {"small": {"model": "a/small", "place": "local"}, "large": {"model": "b/large", "tier": "frontier"}}
BASE = Classifier.shipped()
FEW = take_one_per_template(read_examples())[::24]


def refuses_examples(said: str | None = None) -> pytest.RaisesExc[RouterError]:
    """Expect that examples are refused, and the words."""
    return pytest.raises(RouterError, match=said, check=lambda error: error.code == "bad_examples")


def prompts(name: str) -> list[str]:
    return [json.loads(line)["prompt"] for line in (HERE / f"own/{name}.jsonl").read_text("utf-8").splitlines()]


OWN = {name: prompts(name) for name in NAMES}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Keep what is made for these tests away from the user's."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("own")
        patch.setattr(own_intents, "find_cache", lambda _: folder)
        yield folder


def config(told: dict[str, Any], **routing: Any) -> RouterConfig:
    return RouterConfig.model_validate({"models": MODELS, "routing": {"own_intents": told} | routing})


@pytest.fixture(scope="module")
def decider(cache: Path) -> Decider:
    """Return one that knows three intents more, of ten examples each, from files."""
    told = {name: {"file": f"{name}.jsonl"} for name in NAMES}
    return Decider(config(told, intents={"trade_compliance": "frontier"}).beside(HERE / "own"), BASE)


@pytest.mark.integration
def test_they_are_recognised_in_other_words_about_as_often_as_their_examples_foretell(decider: Decider) -> None:
    unseen = [(name, text) for name in NAMES for text in prompts(f"{name}_unseen")]
    told = [decider.decide(RoutingQuestion(prompt=text)) for _, text in unseen]
    found = np.array([each.intent == name for each, (name, _) in zip(told, unseen, strict=True)])
    assert isinstance(decider.classifier, OwnClassifier)
    assert found.mean() >= 0.3
    assert abs(found.mean() - decider.classifier.taught.recalled.mean()) < 0.2
    confused = [each.intent in NAMES and each.intent != name for each, (name, _) in zip(told, unseen, strict=True)]
    assert np.mean(confused) < 0.15


@pytest.mark.integration
@pytest.mark.parametrize("exam", ["a", "b"])
def test_ours_lose_a_point_at_most_and_no_difficulty_changes(decider: Decider, exam: str) -> None:
    lines = [json.loads(line) for line in (HERE / f"exam/{exam}.jsonl").read_text("utf-8").splitlines()]
    before, after = ([classifier.read(line["prompt"]) for line in lines] for classifier in (BASE, decider.classifier))
    wanted = [line["label"]["intent"] for line in lines]
    right = [
        np.mean([read.intent == want for read, want in zip(told, wanted, strict=True)]) for told in (before, after)
    ]
    assert right[0] - right[1] <= 0.01
    assert [reading.hard for reading in before] == [reading.hard for reading in after]


@pytest.mark.integration
def test_the_record_names_them_and_the_configuration_gives_them_a_tier(decider: Decider) -> None:
    text = OWN["trade_compliance"][1]
    decision = decider.decide(RoutingQuestion(prompt=text))
    assert (decision.intent, decision.tier) == ("trade_compliance", "frontier")
    assert decision.signals["own_intents"]["trade_compliance"] == decision.signals["intents"]["trade_compliance"] > 0.3
    assert "+own-" in decision.signals["classifier"]
    assert decider.decide(RoutingQuestion(prompt=text, intent="hypotheses")).intent == "factor_idea", (
        "taken at its word"
    )
    assert decider.decide(RoutingQuestion(prompt="hm", role="client_letter")).intent == "client_letter"


@pytest.mark.integration
def test_an_agent_of_ours_sends_them_where_its_role_is_said_to() -> None:
    told = {name: {"examples": texts} for name, texts in OWN.items()}
    roles = {"idea": {"factor_idea": 0.5, "options_surface": 0.5}}
    own_role = Decider(config(told, roles=roles), BASE)
    for text, intent in (
        (OWN["options_surface"][0], "options_surface"),
        ("Invent a new signal from returns", "factor_idea"),
    ):
        assert own_role.decide(RoutingQuestion(prompt=text, role="idea", intent="hypotheses")).intent == intent


@settings(max_examples=8)
@given(st.integers(0, 1_000))
def test_the_order_of_intents_and_examples_does_not_matter(seed: int) -> None:
    shuffled = list(OWN.items())
    random.Random(seed).shuffle(shuffled)
    other = {name: random.Random(seed).sample(texts, len(texts)) for name, texts in shuffled}
    one, two = (own_intents.TaughtIntents.of(intents, BASE.vectors, FEW) for intents in (OWN, other))
    assert one.names == two.names
    for part in ("weights", "limits", "slopes", "recalled"):
        assert getattr(one, part).tobytes() == getattr(two, part).tobytes()


@pytest.fixture(scope="module")
def small(cache: Path) -> OwnClassifier:
    return OwnClassifier(BASE, OWN, ours=FEW)


@given(st.one_of(st.text(max_size=300), st.sampled_from([text for texts in OWN.values() for text in texts])))
def test_difficulty_and_what_ours_are_to_each_other_stay_as_they_were(small: OwnClassifier, text: str) -> None:
    before, after = BASE.read(text), small.read(text)
    assert before.hard == after.hard
    assert sum(after.intents.values()) == pytest.approx(1.0)
    kept = sum(after.intents[name] for name in INTENTS)
    assert [after.intents[name] / kept for name in INTENTS] == pytest.approx([before.intents[name] for name in INTENTS])
    assert after.intent in NAMES or after.intent == before.intent


def test_the_same_examples_give_the_same_and_others_another_name(small: OwnClassifier, tmp_path: Path) -> None:
    again = OwnClassifier(BASE, OWN, tmp_path, FEW)
    assert again.name == small.name
    assert again.read("Fit a smile") == small.read("Fit a smile")
    (kept,) = tmp_path.iterdir()
    before = kept.read_bytes()
    assert OwnClassifier(BASE, OWN, tmp_path, FEW).read("Fit a smile") == again.read("Fit a smile")
    kept.write_bytes(b"damaged")
    assert OwnClassifier(BASE, OWN, tmp_path, FEW).read("Fit a smile") == again.read("Fit a smile")
    assert kept.read_bytes() == before
    fewer = OWN | {"client_letter": OWN["client_letter"][1:]}
    assert OwnClassifier(BASE, fewer, tmp_path, FEW).name != small.name


def test_what_was_kept_and_is_changed_is_made_again_or_has_another_name(small: OwnClassifier, tmp_path: Path) -> None:
    OwnClassifier(BASE, OWN, tmp_path, FEW)
    (kept,) = tmp_path.iterdir()
    with np.load(kept) as held:
        arrays = {name: held[name] for name in held.files}
    np.savez(kept, **arrays | {"limits": arrays["limits"] - 50.0})
    again = OwnClassifier(BASE, OWN, tmp_path, FEW)
    assert again.name == small.name
    assert again.taught.limits == pytest.approx(small.taught.limits)
    fit.save_arrays(kept, {**small.taught.arrays(), "limits": small.taught.limits - 50.0})
    other = OwnClassifier(BASE, OWN, tmp_path, FEW)
    assert other.taught.limits == pytest.approx(small.taught.limits - 50.0), "whoever keeps it right is believed"
    assert other.name != small.name
    renamed = OWN | {"letter_to_clients": OWN["client_letter"]}
    del renamed["client_letter"]
    assert OwnClassifier(BASE, renamed, tmp_path, FEW).name != small.name


def test_a_file_is_read_once_so_that_a_record_of_the_settings_needs_none(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text((HERE / "own/client_letter.jsonl").read_text("utf-8"))
    (tmp_path / "router.yaml").write_text(
        json.dumps({"models": MODELS, "routing": {"own_intents": {"letter": {"file": "mine.jsonl"}}}})
    )
    told = read_settings(tmp_path / "router.yaml", RouterConfig).beside(tmp_path).routing.own_intents["letter"]
    assert (told.file, list(told.examples)) == (None, OWN["client_letter"])


FIVE = ["Fit the smile", "Why is skew flat?", "Fill the wings", "Interpolate the tenor", "Is the fly rich?"]


@pytest.mark.parametrize(
    ("name", "told", "said"),
    [
        ("mine", {"examples": FIVE[:4]}, "4 are too few"),
        ("mine", {"examples": FIVE[:1]}, "1 is too few"),
        ("mine", {}, "0 are too few"),
        ("mine", {"examples": [f"prompt {'x' * at}" for at in range(51)]}, "51 are too many"),
        ("mine", {"examples": [*FIVE, " ?\n"]}, "number 6 holds no word"),
        ("mine", {"examples": [*FIVE, "fit  THE smile"]}, "number 6 is the same as number 1 of mine"),
        ("debug", {"examples": FIVE}, "is an intent of ours"),
        ("hypotheses", {"examples": FIVE}, "is an intent of ours"),
        ("My intent", {"examples": FIVE}, "is no name"),
        ("mine", {"file": "none.jsonl"}, "cannot read none.jsonl: No such file"),
        ("mine", {"file": "bad.jsonl"}, "line 2 of bad.jsonl holds no prompt"),
        ("mine", {"file": "latin.jsonl"}, "it is no UTF-8 text"),
        ("mine", {"file": "."}, "cannot read .: "),
        ("mine", {"examples": FIVE, "file": "bad.jsonl"}, "has examples and a file"),
    ],
)
@pytest.mark.parametrize("how", ["file", "code"])
def test_what_cannot_be_used_is_told(
    name: str, told: Any, said: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.jsonl").write_text('{"prompt": "Fit the smile"}\n{"prompt": 3}\n')
    Path("latin.jsonl").write_bytes(b'{"prompt": "\xe4"}')
    with refuses_examples() as caught:
        config({name: told}).beside(Path()) if how == "file" else Decider(config({name: told}), BASE).classifier
    assert said in str(caught.value)
    assert caught.value.field.startswith("routing.own_intents")
    assert caught.value.allowed is not None
    assert caught.value.hint


def test_two_intents_may_not_share_an_example_nor_be_too_many() -> None:
    with refuses_examples("the same as number 1 of one"):
        Decider(config({name: {"examples": FIVE} for name in ("one", "two")}), BASE).classifier  # noqa: B018 - reading it refuses
    many = {f"own_{at}": {"examples": [f"{text} {'x' * at}" for text in FIVE]} for at in range(21)}
    with refuses_examples("too many intents"):
        config(many).beside(Path())
