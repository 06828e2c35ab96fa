"""Doctor says what is there and how to close each gap."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from alphaloom.desk.cli import doctor as doctoring
from alphaloom.desk.cli.main import run_command
from alphaloom.extras import install_hint
from alphaloom.router.endpoints.health import Health

ROOT = Path(__file__).resolve().parents[2]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models are configured: one that runs here, and one whose server is off."""
    found = [
        Health("researcher", "offline/researcher", "local", True, "runs in this process"),
        Health("big", "hosted_vllm/big", "frontier", False, "http://127.0.0.1:1/v1/models does not answer"),
    ]
    monkeypatch.setattr(doctoring, "_probe", lambda campaign: found)


def test_a_model_that_does_not_answer_limits_but_does_not_fail(capsys: Capture, tmp_path: Path) -> None:
    assert run_command(["doctor", "--json", "--workspace", str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    models = [finding for finding in printed["findings"] if finding["group"] == "models"]
    assert [finding["status"] for finding in models] == ["ok", "limited"]
    assert "api_key_env" in models[1]["hint"]
    assert printed["can"]["research with a language model"] is False


def test_a_campaign_file_none_of_whose_models_answers_cannot_run(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "campaign.yaml"
    file.write_text("name: mine\n")
    dead = Health("big", "hosted_vllm/big", "frontier", False, "does not answer")
    monkeypatch.setattr(doctoring, "_probe", lambda config: [dead])
    assert run_command(["doctor", str(file), "--json", "--workspace", str(tmp_path)]) == 3
    monkeypatch.setattr(doctoring, "_probe", lambda config: [dead, Health("unknown", "x/y", "frontier", None, "a key")])
    assert run_command(["doctor", str(file), "--json", "--workspace", str(tmp_path)]) == 0


def test_a_model_that_is_named_and_does_not_answer_is_to_be_mended_not_named(capsys: Capture, tmp_path: Path) -> None:
    assert run_command(["doctor", "--workspace", str(tmp_path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "no research with a language model: big (hosted_vllm/big) does not answer: start the server" in text
    assert "name one under models" not in text


def test_the_environment_of_vllm_is_found(capsys: Capture, tmp_path: Path) -> None:
    def look() -> list[tuple[str, str]]:
        assert run_command(["doctor", "--json", "--workspace", str(tmp_path)]) == 0
        findings = json.loads(capsys.readouterr().out)["findings"]
        return [(one["status"], one["found"]) for one in findings if one["name"] == "vllm"]

    assert look() == []
    (tmp_path / "vllm" / "bin").mkdir(parents=True)
    assert look() == [("limited", f"incomplete in {tmp_path / 'vllm'}")]
    (tmp_path / "vllm" / "bin" / "python").touch()
    (tmp_path / "vllm" / "alphaloom-vllm.json").write_text('{"build": "cpu", "version": "0.32.0"}')
    assert look() == [("ok", f"0.32.0 (cpu) in {tmp_path / 'vllm'}, for alphaloom models serve")]


def test_doctor_prints_one_object(capsys: Capture, tmp_path: Path) -> None:
    assert run_command(["doctor", "--json", "--workspace", str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is True
    assert {finding["group"] for finding in printed["findings"]} >= {"packages", "machine", "workspace"}
    assert all(finding["status"] in {"ok", "limited", "missing"} for finding in printed["findings"])


def test_doctor_names_every_required_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.split(r"[\[>]", line)[0] for line in project["dependencies"]}
    assert named - {"matplotlib"} == set(doctoring.REQUIRED_PACKAGES)


def test_a_missing_package_ends_with_3_and_the_remedy(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(doctoring.REQUIRED_PACKAGES, "no-such-package", "nothing")
    assert run_command(["doctor", "--workspace", str(tmp_path)]) == 3
    assert "pip install no-such-package" in capsys.readouterr().out


def test_a_workspace_that_is_a_file_is_missing(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run_command(["doctor", "--json", "--workspace", str(tmp_path / "file")]) == 3
    printed = json.loads(capsys.readouterr().out)
    (folder,) = [finding for finding in printed["findings"] if finding["name"] == "folder"]
    assert folder["status"] == "missing"
    assert "--workspace" in folder["hint"]


def test_a_ledger_whose_server_is_down_is_missing_with_what_to_do(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "ledger.json").write_text('{"address": "postgresql://127.0.0.1:1/alphaloom"}')
    assert run_command(["doctor", "--json", "--workspace", str(tmp_path)]) == 3
    printed = json.loads(capsys.readouterr().out)
    (ledger,) = [finding for finding in printed["findings"] if finding["name"] == "ledger"]
    assert ledger["status"] == "missing"
    assert "Start the server" in ledger["hint"] or install_hint("postgres") in ledger["hint"]


ROUTER = 'models: {qwen: {model: hosted_vllm/qwen, place: local, api_base: "http://127.0.0.1:1/v1"}}\n'


def test_doctor_looks_at_the_models_of_a_router_file_named_or_here(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    Path("router.yaml").write_text(ROUTER)
    for named in ([], ["router.yaml"]):
        assert run_command(["doctor", *named, "--json", "--workspace", str(tmp_path)]) == 0
        groups = {finding["group"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
        found = groups["models of router.yaml"]
        assert (found["name"], found["status"]) == ("qwen (hosted_vllm/qwen)", "limited")
        assert "qwen in router.yaml" in found["hint"]
        assert ("models" in groups, "found without a file" in groups) == (not named, False)
    Path("router.yaml").write_text("model: x\n")
    assert run_command(["doctor", "--workspace", str(tmp_path)]) == 0, "a mistake there does not hinder campaigns"
    assert "limited" in capsys.readouterr().out.split("models of router.yaml")[1]


def test_beside_a_router_file_it_is_said_that_a_campaign_asks_its_own_models(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    Path("router.yaml").write_text(ROUTER)
    run_command(["doctor", "--workspace", str(tmp_path)])
    (line,) = [row for row in capsys.readouterr().out.splitlines() if "research with a language model" in row]
    assert (
        "the models of router.yaml answer `alphaloom route` and programs; a campaign asks those of its own file" in line
    )
