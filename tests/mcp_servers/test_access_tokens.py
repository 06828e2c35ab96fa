"""Tokens of our own: recognised while they are live, refused alike in every other case, and never told again."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from alphaloom.ledger import SettingsError
from alphaloom.mcp_servers.access import Grant, Issued, Scope, Tokens, create_token, list_tokens, revoke_token
from alphaloom.mcp_servers.access.scopes import ALL_SCOPES
from alphaloom.mcp_servers.errors import McpServerError, TokenRefused

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
GRANT = Grant(
    ("data:read", "data:jurisdiction:CH", "data:confidential"), date(2027, 1, 31), date(2015, 12, 31), ("close",)
)
FORM = re.compile(r"alt_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")
law = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
scopes = st.sampled_from([*ALL_SCOPES[:-1], "data:jurisdiction:CH", "data:jurisdiction:US"])
names = st.text(st.characters(blacklist_categories=("C", "Zl", "Zp", "Zs")), min_size=1, max_size=30)
days = st.dates(NOW.date(), date(2900, 1, 1))
grants = st.builds(
    Grant,
    st.lists(scopes, min_size=1, max_size=4).map(tuple),
    days,
    st.none() | st.dates(),
    st.none() | st.lists(names | st.just("12e45678"), min_size=1, max_size=3).map(tuple),
    names | st.sampled_from(["", "1e5"]),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.yaml"


def opened(path: Path, now: datetime = NOW) -> Tokens:
    return Tokens.open(path, clock=lambda: now)


def reason(path: Path, bearer: str, now: datetime = NOW) -> str:
    with pytest.raises(TokenRefused) as caught:
        opened(path, now).verify(bearer)
    return str(caught.value)


@law
@given(grants)
def test_what_was_granted_is_what_its_bearer_may(path: Path, grant: Grant) -> None:
    issued = create_token(path, grant, now=NOW)
    caller = opened(path).verify(issued.token)
    assert (caller.id, caller.scopes, caller.as_of) == (issued.entry.id, frozenset(grant.scopes), grant.as_of)
    assert caller.fields == (frozenset(grant.fields) if grant.fields is not None else None)
    assert list_tokens(path)[-1].note == grant.note
    assert caller.expires == datetime(*grant.expires.timetuple()[:3], tzinfo=UTC) + timedelta(days=1)


def test_a_token_has_its_form_and_only_its_digest_is_kept(path: Path) -> None:
    issued = create_token(path, GRANT, now=NOW)
    assert FORM.fullmatch(issued.token)
    assert issued.token[4:12] == issued.entry.id
    assert issued.token not in repr(issued)
    body = path.read_text()
    assert issued.token[13:] not in body
    assert hashlib.sha256(issued.token.encode()).hexdigest() in body
    assert sys.platform == "win32" or path.stat().st_mode & 0o777 == 0o600


def test_the_labels_of_a_caller_are_its_scopes_of_that_name(path: Path) -> None:
    issued = create_token(path, GRANT, now=NOW)
    caller = opened(path).verify(issued.token)
    assert caller.labels == {"jurisdiction:CH", "confidential"}
    assert caller.allows(Scope.DATA_READ)
    assert not caller.allows("factor:write")


def test_unknown_malformed_expired_and_revoked_tokens_are_refused_in_the_same_words(path: Path) -> None:
    live, other = (create_token(path, GRANT, now=NOW) for _ in range(2))
    revoke_token(path, other.entry.id, now=NOW)
    last, first = datetime(2027, 1, 31, 23, 59, 59, tzinfo=UTC), datetime(2027, 2, 1, tzinfo=UTC)
    opened(path, last).verify(live.token)
    bad = ["", "Bearer", live.token + "A", live.token[:-1], live.token[:13] + "A" * 43, "ü", "\ud800", "x" * 10**6]
    said = {reason(path, token) for token in bad} | {reason(path, other.token), reason(path, live.token, first)}
    assert len(said) == 1


def test_every_entry_is_compared_whatever_is_shown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [create_token(path, GRANT, now=NOW) for _ in range(3)]
    revoke_token(path, made[1].entry.id, now=NOW)
    tokens = opened(path)
    compared: list[bool] = []

    def counted(one: str, other: str) -> bool:
        compared.append(one == other)
        return one == other

    monkeypatch.setattr("hmac.compare_digest", counted)
    for bearer in (made[0].token, made[1].token, "x"):
        compared.clear()
        try:
            tokens.verify(bearer)
        except TokenRefused:
            assert bearer != made[0].token
        assert len(compared) == 3


def test_a_running_server_takes_new_tokens_and_refuses_revoked_ones_at_once(path: Path) -> None:
    first = create_token(path, GRANT, now=NOW)
    tokens = opened(path)
    second = create_token(path, GRANT, now=NOW)
    assert tokens.verify(second.token).id == second.entry.id
    _, new = revoke_token(path, first.entry.id, now=NOW)
    assert new
    with pytest.raises(TokenRefused):
        tokens.verify(first.token)
    assert revoke_token(path, first.entry.id, now=NOW)[1] is False
    tokens.verify(second.token)


@pytest.mark.parametrize("harm", ["gone", "broken", "open"])
def test_a_file_that_cannot_be_used_any_more_refuses_everybody_until_it_can(
    path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    if harm == "open" and sys.platform == "win32":
        pytest.skip("permissions of POSIX")
    issued = create_token(path, GRANT, now=NOW)
    tokens, body = opened(path), path.read_bytes()
    if harm == "gone":
        path.unlink()
    elif harm == "broken":
        path.write_text("tokens: [")
    else:
        path.chmod(0o640)
    for _ in range(3):
        with pytest.raises(TokenRefused) as caught:
            tokens.verify(issued.token)
    assert len(caplog.messages) == 1, "whoever runs the servers is told, and not with every call"
    assert issued.token not in caplog.text
    assert tokens.problem is not None
    assert str(caught.value) == reason_of_unknown()
    path.write_bytes(body)
    path.chmod(0o600)
    assert tokens.verify(issued.token).id == issued.entry.id
    assert tokens.problem is None


def reason_of_unknown() -> str:
    return str(TokenRefused())


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_every_mistake_of_a_file_is_told_at_once_and_no_secret_with_it(path: Path) -> None:
    issued = create_token(path, GRANT, now=NOW)
    body = path.read_text().replace("expires:", "expire:").replace("data:confidential", "data:confidental")
    body = re.sub(r"sha256: .*", f"sha256: {issued.token}", body) + f"  note: for {issued.token}\n"
    path.write_text(body)
    path.chmod(0o644)
    with pytest.raises(SettingsError) as caught:
        list_tokens(path)
    message = str(caught.value)
    for part in (
        "others may use this file (mode 0644)",
        "expire: there is no such key",
        "did you mean data:confidential",
        "expires: this key is missing",
        "sha256: must be a SHA-256",
        "note: must not hold a token",
    ):
        assert part in message
    told = message + str(caught.value.record())
    assert issued.token[13:] not in told


def test_a_grant_that_makes_no_sense_is_refused_with_every_mistake(path: Path) -> None:
    wrong: list[tuple[Grant, str]] = [
        (Grant(("data:reed", "x"), date(2027, 1, 1)), "did you mean data:read?"),
        (Grant((), date(2027, 1, 1)), "scopes: must name at least one"),
        (Grant(("data:read",), date(2026, 11, 21)), "this day is over"),
        (Grant(("data:read",), date(2027, 1, 1), note="two\nlines"), "one line of visible characters"),
    ]
    for grant, words in wrong:
        with pytest.raises(SettingsError) as caught:
            create_token(path, grant, now=NOW)
        assert words in str(caught.value)
    assert not path.exists()


def test_an_id_that_is_not_there_is_told_with_those_that_are_and_a_token_is_not_repeated(path: Path) -> None:
    issued = create_token(path, GRANT, now=NOW)
    with pytest.raises(McpServerError) as caught:
        revoke_token(path, issued.token, now=NOW)
    assert caught.value.code == "unknown_token"
    assert issued.entry.id in str(caught.value)
    assert issued.token not in str(caught.value.record())


MANY = """
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from alphaloom.mcp_servers.access import Grant, create_token
for _ in range(10):
    create_token(Path(sys.argv[1]), Grant(("data:read",), date(2099, 1, 1)), now=datetime(2026, 11, 22, tzinfo=UTC))
"""


def test_writers_at_the_same_time_lose_no_token(path: Path) -> None:
    inherited = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / ".root")}
    writers = [subprocess.Popen([sys.executable, "-c", MANY, str(path)], env=inherited) for _ in range(2)]
    assert [writer.wait(timeout=300) for writer in writers] == [0, 0]
    assert len({entry.id for entry in list_tokens(path)}) == 20


def test_a_file_that_holds_a_token_twice_is_refused(path: Path) -> None:
    create_token(path, GRANT, now=NOW)
    body = path.read_text()
    path.write_text(body + body[body.index("- id") :])
    with pytest.raises(SettingsError, match="two tokens have the same id"):
        list_tokens(path)


def test_what_was_issued_is_the_only_place_of_the_secret(path: Path) -> None:
    issued: Any = create_token(path, GRANT, now=NOW)
    assert isinstance(issued, Issued)
    assert [name for name in os.listdir(path.parent) if issued.token in (path.parent / name).read_text()] == []
