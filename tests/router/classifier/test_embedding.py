"""An embedding of the user's own: what it reads, what is kept of it, and what is said of a folder that holds none."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alphaloom.extras import install_hint
from alphaloom.router import RouterConfig
from alphaloom.router.classifier import INTENTS, embedding, fit
from alphaloom.router.classifier.embedding import EmbeddingVectors
from alphaloom.router.classifier.model import Classifier, WeightTable
from alphaloom.router.classifier.own_intents import OwnClassifier
from alphaloom.router.classifier.training_prompts import Example, read_examples, take_one_per_template
from alphaloom.router.errors import RouterError
from alphaloom.router.policy.decision import Decider, RoutingQuestion

from .tiny_onnx import SIZE, written

MODELS = {"small": {"model": "a/small", "place": "local"}, "large": {"model": "b/large", "tier": "frontier"}}
FEW = [example for example in read_examples() if example.voice in ("voice_1", "voice_2")]


def refuses(said: str | None = None) -> pytest.RaisesExc[RouterError]:
    """Expect that what reads prompts is refused, and the words."""
    return pytest.raises(RouterError, match=said, check=lambda error: error.code == "bad_classifier")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("onnxruntime", "onnx"):
        pytest.importorskip(name, reason=f"{name} is not installed: `make embedding` brings it and runs these")
    return written(tmp_path_factory.mktemp("tiny") / "model")


def test_a_missing_library_is_told_with_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with refuses("needs onnxruntime") as told:
        EmbeddingVectors(tmp_path)
    assert install_hint("embedding") in told.value.hint


def test_a_path_starts_from_the_folder_of_its_file(tmp_path: Path) -> None:
    config = RouterConfig.model_validate({"models": MODELS, "routing": {"embedding": "models/mine"}})
    assert config.beside(tmp_path).routing.embedding == tmp_path / "models" / "mine"
    plain = RouterConfig.model_validate({"models": MODELS})
    assert plain.beside(tmp_path) == plain


def test_the_router_reads_by_it(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "find_cache", lambda _: tmp_path)
    config = RouterConfig.model_validate({"models": MODELS, "routing": {"embedding": str(tiny)}})
    decision = Decider(config).decide(RoutingQuestion(prompt="Which field holds the traded volume in shares?"))
    assert decision.signals["classifier"].startswith("embedding-")
    assert decision.intent == "data_lookup"
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]


def test_intents_of_ones_own_are_read_by_it_and_each_text_once(tiny: Path, tmp_path: Path) -> None:
    base = EmbeddingVectors(tiny, tmp_path, FEW)
    told = {
        "letters": [f"Write a letter to our {who}" for who in ("clients", "investors", "owners", "lenders", "heirs")]
    }
    own = OwnClassifier(Classifier(base, base.name), told, tmp_path / "own", take_one_per_template(FEW))
    assert own.name.startswith("embedding-")
    assert own.read("write a letter to our clients").intent == "letters"
    plain, text = Classifier(base, base.name), "Which field holds the traded volume in shares?"
    assert own.read(text).hard == plain.read(text).hard
    assert own.read(text).intent == plain.read(text).intent
    asked: list[int] = []
    embed = base._encoder.embed
    base._encoder.embed = lambda texts: asked.append(len(texts)) or embed(texts)  # type: ignore[func-returns-value, method-assign]
    own.read("a text that nobody has asked for before")
    assert asked == [1]


def test_it_reads_voices_that_it_was_not_fitted_to(tiny: Path, tmp_path: Path) -> None:
    own = EmbeddingVectors(tiny, tmp_path, FEW)
    unheard = [example for example in read_examples() if example.voice == "voice_3"]
    told = np.stack([own.alone(example.prompt) for example in unheard])
    assert np.mean(told[:, :-1].argmax(axis=1) == [INTENTS.index(example.intent) for example in unheard]) > 0.2
    assert np.mean((told[:, -1] > 0) == [example.hard for example in unheard]) > 0.6


def test_the_words_count_beside_it(tiny: Path, tmp_path: Path) -> None:
    table, text = WeightTable.read(), "why does the signal decay so fast out of sample?"
    own = EmbeddingVectors(tiny, tmp_path, FEW[::5])
    assert own.scores(text) == pytest.approx(table.scores(text) + embedding.EMBEDDING_WEIGHT * own.alone(text))
    assert EmbeddingVectors(tiny, tmp_path, FEW[::5], replace(table, digest="another")).name != own.name


@pytest.mark.parametrize(
    "said", [{"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, {"pooling_mode": "cls"}]
)
def test_a_folder_as_published_is_read_as_it_says(tiny: Path, tmp_path: Path, said: dict[str, object]) -> None:
    folder = tmp_path / "published"
    (folder / "onnx").mkdir(parents=True)
    (folder / "1_Pooling").mkdir()
    shutil.copy(tiny / "model.onnx", folder / "onnx")
    shutil.copy(tiny / "tokenizer.json", folder)
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({"word_embedding_dimension": SIZE, "pooling_mode_mean_tokens": True}))
    mean, first = (EmbeddingVectors(folder, tmp_path, FEW[::10]).embed([text])[0] for text in ("the signal", "the"))
    assert mean == pytest.approx(EmbeddingVectors(tiny, tmp_path, FEW[::10]).embed(["the signal"])[0])
    pooling.write_text(json.dumps(said))
    assert EmbeddingVectors(folder, tmp_path, FEW[::10]).embed(["the signal"])[0] == pytest.approx(first)
    pooling.write_text('{"pooling_mode": "lasttoken"}')
    with refuses("pooled by lasttoken"):
        EmbeddingVectors(folder, tmp_path, FEW[::10])


def test_a_row_that_the_export_pools_itself_is_taken(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed: `make embedding` brings it and runs these")
    folder = written(tmp_path / "made", pooled=True)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "lasttoken"}')
    own = EmbeddingVectors(folder, tmp_path, FEW[::10])
    the, signal, both = (own.embed([text])[0] for text in ("the", "signal", "the signal"))
    assert np.linalg.norm(both) == pytest.approx(1)
    assert both @ the > 0.5
    assert both @ signal > 0.5


def test_a_row_is_the_mean_of_its_tokens_however_it_is_batched(tiny: Path, tmp_path: Path) -> None:
    own = EmbeddingVectors(tiny, tmp_path, FEW)
    texts = ["", "the", "the signal", "why does the signal decay so fast out of sample and what would you test?"] * 20
    rows = own.embed(texts)
    assert rows.shape == (80, SIZE)
    assert np.array_equal(rows[:4], np.concatenate([own.embed([text]) for text in texts[:4]]))
    assert np.linalg.norm(rows[:4], axis=1) == pytest.approx([0, 1, 1, 1], abs=1e-6)
    ids = own._encoder._tokenizer.encode("the signal").ids
    assert ids[0] != ids[1]
    one, other = (
        own._encoder._session.run(None, {"input_ids": np.array([[token]]), "attention_mask": np.array([[1]])})[0][0, 0]
        for token in ids
    )
    mean = (one + other) / 2
    assert rows[2] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


@pytest.mark.parametrize("text", ["", " ", "\x00", "🙂", "a" * 100_000, "\ud800", "word " * 50_000])
def test_any_text_can_be_read(tiny: Path, tmp_path: Path, text: str) -> None:
    reading = Classifier(EmbeddingVectors(tiny, tmp_path, FEW[::10]), "tiny").read(text)
    assert 0.0 <= reading.hard <= 1.0


def test_a_head_is_kept_and_another_model_or_prompt_makes_another(tiny: Path, tmp_path: Path) -> None:
    first = EmbeddingVectors(tiny, tmp_path, FEW[::5])
    (kept,) = tmp_path.iterdir()
    before = kept.stat().st_mtime_ns
    again = EmbeddingVectors(tiny, tmp_path, FEW[::5])
    assert again.name == first.name
    assert kept.stat().st_mtime_ns == before
    assert np.array_equal(again.scores("mend this"), first.scores("mend this"))
    kept.write_bytes(b"damaged")
    assert np.array_equal(EmbeddingVectors(tiny, tmp_path, FEW[::5]).scores("mend this"), first.scores("mend this"))
    fit.save_arrays(kept, {"head": first._head + 1.0})
    assert EmbeddingVectors(tiny, tmp_path, FEW[::5]).name != first.name, "with every weight"
    with np.load(kept) as held:
        np.savez(kept, head=first._head - 1.0, digest=held["digest"])
    assert EmbeddingVectors(tiny, tmp_path, FEW[::5]).name == first.name, "made again"
    assert EmbeddingVectors(tiny, tmp_path, FEW[::6]).name != first.name
    other = shutil.copytree(tiny, tmp_path / "other")
    (other / "model.onnx_data").write_bytes(b"weights beside the graph")
    assert EmbeddingVectors(other, tmp_path, FEW[::5]).name != first.name


def test_a_folder_that_cannot_be_written_keeps_nothing(tiny: Path, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("in the way")
    assert EmbeddingVectors(tiny, place / "cache", FEW[::10]).scores("mend this").shape == (11,)


def spoilt(tiny: Path, folder: Path, what: str) -> Path:
    """Return a copy of the model with one thing wrong."""
    if what in ("wants pixel_values", "does not take"):
        inputs = ("pixel_values",) if what == "wants pixel_values" else ("input_ids",)
        return written(folder / "made", inputs=inputs, rows=3)
    copy = shutil.copytree(tiny, folder / "copy")
    if what == "holds no embedding":
        (copy / "model.onnx").unlink()
    else:
        (copy / ("model.onnx" if what == "cannot be read" else "tokenizer.json")).write_bytes(b"\x00none")
    return copy


@pytest.mark.parametrize(
    "what", ["holds no embedding", "cannot be read", "embedding cannot", "wants pixel_values", "does not take"]
)
def test_a_folder_without_a_usable_model_is_told(tiny: Path, tmp_path: Path, what: str) -> None:
    with refuses(what) as told:
        EmbeddingVectors(spoilt(tiny, tmp_path, what), tmp_path / "cache", FEW[::10])
    assert told.value.field == "routing.embedding"
    assert told.value.got
    assert "tokenizer.json" in str(told.value.allowed)


def test_a_model_that_gives_no_numbers_is_refused_and_routes_nothing(tiny: Path, tmp_path: Path) -> None:
    import onnx

    own = shutil.copytree(tiny, tmp_path / "copy")
    graph = onnx.load(str(own / "model.onnx"))
    table = onnx.numpy_helper.to_array(graph.graph.initializer[0]) * np.float32("nan")
    graph.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(table, "table"))
    onnx.save(graph, str(own / "model.onnx"))
    with refuses("numbers that are none"):
        EmbeddingVectors(own, tmp_path / "cache", [Example("a", "code", False, "t", "v")])
