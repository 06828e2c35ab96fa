"""Random requests beside calls of tools: resources, prompts, completions, lists and cursors."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
from mcp.types import PromptReference, ResourceTemplateReference

from alphaloom.factors import OPERATORS
from alphaloom.mcp_servers.tools import SERVERS

from .test_fuzz import ODD, SOUND, TEXTS

NAMES = ("operators", "library", "panels", "grammar", "rules", "fields", "universe", "reports/run", "", "..", "%2e%2e")
PROMPTS = ("propose_factor", "review", "", "run")
Request = tuple[str, dict[str, Any]]


def seconds(name: str, usual: float) -> float:
    """Return how long a test may take, as the environment says."""
    return float(os.environ.get(name, usual))


def repeat(until: float, drawn: st.SearchStrategy[Any], ask: Callable[[Any], None]) -> int:
    """Ask drawn examples, seed after seed, until a moment; return the number of seeds. A failure names its seed."""
    number = 0
    while time.monotonic() < until:

        @seed(number)
        @settings(
            max_examples=5,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            print_blob=False,
            suppress_health_check=list(HealthCheck),
        )
        @given(drawn)
        def once(asked: Any) -> None:
            ask(asked)

        try:
            once()
        except BaseException as error:
            error.add_note(f"seed {number}")
            raise
        number += 1
    return number


def cursors() -> st.SearchStrategy[str]:
    """Return cursors as ours look: a place and a question."""
    places = st.one_of(st.integers(-5, 10**20), ODD)
    raw = st.tuples(places, st.text("0123456789abcdef", min_size=16, max_size=16) | ODD)
    return raw.map(lambda pair: base64.urlsafe_b64encode(json.dumps(pair, default=str).encode()).decode())


SOUND.setdefault("cursor", st.just("") | cursors())
SOUND.setdefault("texts", st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5))
SOUND.setdefault("symbols", st.just([]) | st.lists(st.sampled_from(["", "N1", "AAA", *TEXTS]), max_size=3))
SOUND.setdefault("wait_s", st.floats(0, 0.2))


def uris(handles: list[str], ids: list[str]) -> st.SearchStrategy[str]:
    """Return addresses of resources: some that are there, some that never were."""
    handle = st.sampled_from([*handles, "0" * 64, "../key"]) | st.text(max_size=70)
    part = st.one_of(st.integers(-2, 9).map(str), st.sampled_from(["", "1e3", "٣", "0x1"]), st.text(max_size=8))
    name = st.sampled_from([*sorted(OPERATORS)[:5], *ids, *TEXTS]) | st.text(max_size=20)
    return st.one_of(
        st.builds("alphaloom://panels/{}/{}".format, handle, part),
        st.builds("alphaloom://{}/{}".format, st.sampled_from(NAMES), name),
        st.builds("alphaloom://{}".format, st.sampled_from(NAMES) | st.text(max_size=30)),
        st.sampled_from(
            ["file:///etc/passwd", "http://127.0.0.1/", "alphaloom:", "", "://", "alphaloom://fields/../rules"]
        ),
        st.text(max_size=40),
    )


def requests(handles: list[str], ids: list[str]) -> st.SearchStrategy[tuple[str, Request]]:
    """Draw a server, a method and what it is asked with."""
    text = st.sampled_from(TEXTS) | st.text(max_size=20)
    words = st.dictionaries(text, text, max_size=3)
    ref = st.one_of(
        st.builds(lambda name: PromptReference(type="ref/prompt", name=name), text),
        st.builds(lambda uri: ResourceTemplateReference(type="ref/resource", uri=uri), uris(handles, ids)),
    )
    argument = st.fixed_dictionaries({"name": st.sampled_from(["id", "name", "part"]) | text, "value": text})
    asked = st.one_of(
        uris(handles, ids).map(lambda uri: ("read_resource", {"uri": uri, "cache_mode": "bypass"})),
        st.builds(
            lambda name, given: ("get_prompt", {"name": name, "arguments": given}),
            st.sampled_from(PROMPTS) | text,
            words,
        ),
        st.builds(lambda of, given: ("complete", {"ref": of, "argument": given}), ref, argument),
        st.builds(
            lambda kind, cursor: (f"list_{kind}", {"cursor": cursor, "cache_mode": "bypass"}),
            st.sampled_from(["tools", "prompts", "resources", "resource_templates"]),
            st.none() | text | cursors(),
        ),
    )
    return st.tuples(st.sampled_from(sorted(SERVERS)), asked)
