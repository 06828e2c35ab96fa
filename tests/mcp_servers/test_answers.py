"""How large an answer may be."""

from __future__ import annotations

from mcp.types import ResourceLink

from alphaloom.mcp_servers.answers import MAX_ANSWER_BYTES, make_result

LINK = ResourceLink(type="resource_link", uri="alphaloom://panels/" + "0" * 64 + "/1", name="close, part 1 of 2")


def test_what_a_client_could_not_hold_is_refused_and_links_count() -> None:
    assert not make_result({"text": "x" * (MAX_ANSWER_BYTES - 100)}).is_error
    assert not make_result({}, links=[LINK] * 100).is_error
    for large in (make_result({"text": "x" * MAX_ANSWER_BYTES}), make_result({}, links=[LINK] * 2_000)):
        assert large.is_error
        assert (large.structured_content or {})["code"] == "too_much"
        assert len(large.content) == 1
