"""A campaign that asks a person before it opens its sealed days: it opens them or closes without the exam."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.campaign.reported import Campaign
from alphaloom.desk.cli.main import run_command
from alphaloom.evidence import RunHalted

from . import markets
from .conftest import Files
from .test_review import EARLY

pytestmark = pytest.mark.integration

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def asking(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace whose campaign waits for a decision on its sealed days."""
    workspace = tmp_path_factory.mktemp("asking")
    (workspace / "policy.yaml").write_text("approve_seal: true\n")
    ready = Campaign.from_yaml(files.campaign, workspace=workspace, overrides=[*markets.CLOSING, *EARLY])
    with pytest.raises(RunHalted, check=lambda error: error.code == "paused_for_seal"):
        replace(ready, clock=lambda: datetime(2199, 7, 9, 11, 13, 17, tzinfo=UTC)).run()
    return workspace


def told(capsys: Capture, workspace: Path, *command: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert run_command([*command, "--workspace", str(workspace), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_agreed_it_opens_them_under_the_name_of_who_agreed(asking: Path, tmp_path: Path, capsys: Capture) -> None:
    workspace = Path(shutil.copytree(asking, tmp_path / "w"))
    assert told(capsys, workspace, "resume", "latest")["code"] == "paused_for_seal"
    assert told(capsys, workspace, "status")["next"].startswith("alphaloom evidence seal ")
    request = told(capsys, workspace, "evidence", "seal", "latest")["request"]
    (workspace / "policy.yaml").write_text("approve_seal: false\n")  # looser: the request stands
    assert told(capsys, workspace, "resume", "latest")["code"] == "paused_for_seal"
    told(capsys, workspace, "evidence", "seal", "latest", "--agree", "--reason", "it is time", "--by", "ann")
    results = told(capsys, workspace, "resume", "latest")
    assert results["sealed"]["reason"].endswith("; ann agreed: it is time")
    assert (results["sealed"]["number"], results["windows"]["sealed"]["days"]) == (1, request["days"])
    assert [one["id"] for one in request["accepted"]] == [entry["id"] for entry in results["accepted"]] != []
    assert not [note for note in results["warnings"] if note["code"] == "seal"]
    assert told(capsys, workspace, "evidence", "seal", "latest", "--refuse", "--reason", "x", code=1)["got"] == "done"


def test_refused_it_closes_without_the_exam_and_says_so(asking: Path, tmp_path: Path, capsys: Capture) -> None:
    workspace = Path(shutil.copytree(asking, tmp_path / "w"))
    told(capsys, workspace, "evidence", "seal", "latest", "--refuse", "--reason", "keep them", "--by", "bob")
    results = told(capsys, workspace, "resume", "latest")
    said = "bob refused to open the sealed (hold-out) days: keep them"
    assert (results.get("sealed"), results["baseline"].get("sealed")) == (None, None)
    assert results["warnings"][-1] == {"code": "seal", "message": said}
    assert f"This run did not open the sealed window: {said}." in Path(results["report"]).read_text()
    capsys.readouterr()
    assert run_command(["log", "latest", "--workspace", str(workspace)]) == 0
    assert said in capsys.readouterr().out
