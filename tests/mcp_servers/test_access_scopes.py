import pytest
from hypothesis import given, strategies as st

from alphaloom.mcp_servers.access import Caller, parse_scope
from alphaloom.mcp_servers.access.scopes import ALL_SCOPES, is_scope
from alphaloom.mcp_servers.served_caller import CallerEntry


@given(st.text(max_size=30))
def test_no_other_text_is_a_scope(text: str) -> None:
    known = text in ALL_SCOPES[:-1] or (len(text) == 20 and text.startswith("data:jurisdiction:"))
    assert known or not is_scope(text)


@pytest.mark.parametrize("text", ["data:jurisdiction:ch", "data:jurisdiction:CHE", "data:jurisdiction:", "data:reed"])
def test_a_wrong_scope_is_told_with_the_one_that_may_be_meant(text: str) -> None:
    with pytest.raises(ValueError, match="did you mean data:"):
        parse_scope(text)


def test_a_caller_without_a_scope_is_told_which_one_it_lacks() -> None:
    entry = CallerEntry(Caller("stdio", frozenset({"data:read"})), record=print)
    assert entry.caller.check_scope("get_history", "data:read") is None
    assert "factor:write" in str(entry.caller.check_scope("register_factor", "factor:write"))
