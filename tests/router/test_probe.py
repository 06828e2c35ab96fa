"""What a vLLM server's metrics say, and what is made of any other text."""

import pytest
from hypothesis import given, strategies as st

from alphaloom.router.endpoints.probe import Load, list_values, read_load

PAGE = r"""
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="tiny"} 3.0
vllm:num_requests_waiting{engine="1",model_name="tiny"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.5
vllm:e2e_request_latency_seconds_bucket{le="+Inf",model_name="a \"b\" \\ c"} 7 1700000000000
process_cpu_seconds_total 1.5e+01
go_gc NaN
"""


def test_queues_of_engines_add_up_and_the_fullest_cache_counts() -> None:
    assert read_load(PAGE) == Load(waiting=5, cache=0.5)


def test_the_cache_had_another_name_before() -> None:
    page = "vllm:num_requests_waiting 1\nvllm:gpu_cache_usage_perc 0.75\n"
    assert read_load(page) == Load(1, 0.75)


@pytest.mark.parametrize("text", ["", "<html>", "up 1", "vllm:num_requests_waiting NaN", "vllm:num_requests_waiting"])
def test_what_is_no_metric_of_vllm_is_no_load(text: str) -> None:
    assert read_load(text) is None


def test_labels_times_and_numbers_are_read() -> None:
    assert list_values(PAGE, "vllm:e2e_request_latency_seconds_bucket") == [7]
    assert list_values(PAGE, "process_cpu_seconds_total") == [15]
    assert list_values(PAGE, "go_gc") == []


names = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,9}", fullmatch=True)
labels = st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,5}", fullmatch=True), st.text(max_size=6), max_size=3)
told = st.lists(st.tuples(names, labels, st.floats(allow_nan=False, allow_infinity=False)), max_size=5)


def written(own: dict[str, str]) -> str:
    plain = {key: text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, text in own.items()}
    return ",".join(f'{key}="{text}"' for key, text in plain.items())


@given(told=told)
def test_what_is_written_as_prometheus_says_is_read_again(told: list[tuple[str, dict[str, str], float]]) -> None:
    lines = [f"{name}{{{written(own)}}} {value}" for name, own, value in told]
    for metric in {name for name, _, _ in told}:
        assert list_values("\n".join(lines), metric) == [value for name, _, value in told if name == metric]


@given(text=st.text(max_size=60))
def test_any_text_is_read_without_a_fuss(text: str) -> None:
    assert read_load(text + "\nvllm:num_requests_waiting 1") is not None


def test_a_cache_that_fills_weighs_like_a_queue() -> None:
    assert [round(Load(0, used).cost, 2) for used in (0.0, 0.5, 0.9, 1.0)] == [0, 1, 9, 99]
