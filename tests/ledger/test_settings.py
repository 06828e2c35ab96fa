from datetime import date
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from alphaloom.ledger import SettingsError, read_settings


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Budget(_Strict):
    evaluations: int = Field(default=100, ge=1, le=5000)
    level: float = 0.05


class Model(_Strict):
    name: str
    tier: Literal["local", "frontier"] = "local"


class Campaign(_Strict):
    budget: Budget = Budget()
    models: dict[str, Model] = {}
    horizons: tuple[int, ...] = (5,)
    panel: Path | None = None
    as_of: date | None = None
    extra: list[Model] | None = None


def read(tmp_path: Path, text: str, *overrides: str) -> Campaign:
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    return read_settings(path, Campaign, overrides)


def refusal(tmp_path: Path, text: str, *overrides: str) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text, *overrides)
    assert caught.value.exit_code == 2
    return caught.value


def test_a_file_becomes_a_frozen_record(tmp_path: Path) -> None:
    text = "budget: {evaluations: 7, level: 1e-4}\nhorizons: [1, 5]\npanel: a.parquet\nas_of: 2017-12-29\n"
    expected = Campaign(
        budget=Budget(evaluations=7, level=1e-4), horizons=(1, 5), panel=Path("a.parquet"), as_of=date(2017, 12, 29)
    )
    assert read(tmp_path, text) == expected


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}"])
def test_an_empty_file_gives_the_defaults(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == Campaign() == read_settings(None, Campaign)


def test_an_override_reaches_any_depth_and_the_last_one_wins(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        "budget: {evaluations: 7}\n",
        "budget.evaluations=8",
        "budget.evaluations=2000",
        "models.small={name: x/y}",
        "models.small.tier=frontier",
        "horizons=[1, 2]",
        "panel=",
    )
    assert settings.budget.evaluations == 2000
    assert settings.models == {"small": Model(name="x/y", tier="frontier")}
    assert settings.horizons == (1, 2)
    assert settings.panel is None


def test_every_mistake_is_said_at_once_with_line_and_nearest_key(tmp_path: Path) -> None:
    text = """\
budget:
  evaluatons: 5
  level: high
models:
  small:
    nme: x
    tier: lokal
horizons: [1, a]
"""
    error = refusal(tmp_path, text, "budget.evaluations=9999")
    assert str(error) == (
        f"7 mistakes in {tmp_path / 'campaign.yaml'}:\n"
        "  budget.evaluations: should be less than or equal to 5000, got 9999\n"
        "  line 2, budget.evaluatons: there is no such key; did you mean evaluations?\n"
        "  line 3, budget.level: should be a valid number, got high\n"
        "  line 5, models.small.name: this key is missing\n"
        "  line 6, models.small.nme: there is no such key; did you mean name?\n"
        "  line 7, models.small.tier: should be 'local' or 'frontier', got lokal\n"
        "  line 8, horizons[1]: should be a valid integer, got a"
    )


def test_an_unknown_key_far_from_any_names_them_all(tmp_path: Path) -> None:
    assert "there is no such key; allowed: evaluations, level" in str(refusal(tmp_path, "budget: {zzz: 1}"))


def test_an_unknown_key_inside_an_optional_list_is_still_placed(tmp_path: Path) -> None:
    error = refusal(tmp_path, "extra:\n- name: a\n- {name: b, teir: local}\n")
    assert "line 3, extra[1].teir: there is no such key; did you mean tier?" in str(error)


def test_the_value_of_an_unknown_key_is_never_shown(tmp_path: Path) -> None:
    error = refusal(tmp_path, "api_key: sk-very-secret")
    assert "sk-very-secret" not in str(error) + str(error.record())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("budget: {evaluations: yes}", "should be a valid integer, got True"),
        ("budget: {evaluations: '5'}", "should be a valid integer, got 5"),
        ("budget: {evaluations: 2.5}", "should be a valid integer, got 2.5"),
        ("budget: 5", "budget: "),
        ("budget: {level: .nan}", "a number must be finite, got .nan"),
        ("budget: {level: -.inf}", "a number must be finite, got -.inf"),
        ("budget: {level: 1}\nbudget: {level: 2}", "line 2, budget: written twice, first on line 1"),
        ("budget: {level: 1, level: 2}", "budget.level: written twice"),
        ("? [a, b]\n: 1", "a key must be a word"),
        ("budget: &b\n  level: *b", "this alias contains itself"),
        ("budget: !!python/object:os.system {}", "is not YAML"),
        ("budget: {1: 2}", "budget.1: there is no such key"),
    ],
)
def test_a_wrong_value_is_said_in_words(tmp_path: Path, text: str, words: str) -> None:
    assert words in str(refusal(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("budget:\n  level: [1\nhorizons: 2", "campaign.yaml, line 3, column 9: this is not YAML"),
        ("\tbudget: 1", "line 1, column 1: this is not YAML"),
        ("a: 1\n---\nb: 2", "line 2, column 1: this is not YAML"),
        ("- a\n- b", "must hold keys with values (key: value), not a list"),
        ("just words", "must hold keys with values (key: value), not a str"),
        ("a: *nowhere", "this is not YAML: found undefined alias"),
    ],
)
def test_what_is_no_yaml_or_no_mapping_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    assert words in str(refusal(tmp_path, text))


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("budget.evaluations", "write key=value, as in budget.evaluations=2000; got budget.evaluations"),
        ("=5", "write key=value"),
        ("budget..level=5", "write key=value"),
        ("horizons.first=5", "horizons.first: horizons is 5, it has no keys"),
        ("budget.level=[1", "budget.level: --set budget.level, line 1"),
        ("budget.levl=1", "budget.levl: there is no such key; did you mean level?"),
        ("budget.level={a: 1, a: 2}", "written twice"),
    ],
)
def test_a_wrong_override_is_said_in_words(tmp_path: Path, override: str, words: str) -> None:
    assert words in str(refusal(tmp_path, "horizons: [5]", override))


def test_a_single_mistake_is_machine_readable(tmp_path: Path) -> None:
    record = refusal(tmp_path, "budget: {evaluations: 0}").record()
    assert record["code"] == "settings"
    assert record["field"] == "budget.evaluations"
    assert record["got"] == 0
    assert record["allowed"] == "should be greater than or equal to 1"


def test_a_missing_file_a_folder_and_a_picture_are_refused(tmp_path: Path) -> None:
    (tmp_path / "picture.yaml").write_bytes(b"\x89PNG\xff")
    for name, words in [("none.yaml", "no settings file"), (".", "cannot read"), ("picture.yaml", "is not UTF-8 text")]:
        with pytest.raises(SettingsError, match=words):
            read_settings(tmp_path / name, Campaign)
