"""Time whole steps of a Llama with random weights on one GPU, beside what the planner expects of them.

A step is what a server's step computes: norms, projections, rotation, the writing of the cache, attention, a gated MLP
and the output head, in 16 bits. Its small kernels are fused by torch.compile and all are captured in one CUDA graph, as
vLLM does; attention is torch's own, not vLLM's. Nothing is scheduled, sampled or turned into text, so the planned times
are compared without the host's part.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from alphaloom.serving import Architecture, Request
from alphaloom.serving.choice import choose_launch
from alphaloom.serving.devices import Device
from alphaloom.serving.speed import Step, estimate_first_token, estimate_output_step

PROMPTS = (512, 2048, 8192)
CACHED = ((1, 1024), (8, 1024), (32, 1024), (128, 1024), (1, 8192), (16, 8192))
"""Sequences, and the tokens of each."""
TIMES, POWER_SECONDS, MIN_BLOCKS = 10, 2.0, 64


@dataclass(frozen=True)
class Layer:
    """The weights of one layer, and its keys and values of shape (2, sequences, key heads, tokens, size of a head)."""

    qkv: Any
    out: Any
    gate_up: Any
    down: Any
    cache: Any


class Llama:
    """A decoder with random weights whose steps can be timed, and a cache for some sequences of some tokens each."""

    def __init__(self, torch: Any, model: Architecture, sequences: int, tokens: int, device: str = "cuda") -> None:
        self.torch, self.model, self.device = torch, model, device
        hidden, size = model.hidden, model.head_dim
        self.embedding = self._draw(model.vocab, hidden)
        self.head = self.embedding if model.tied else self._draw(model.vocab, hidden)
        self.norm = torch.ones(hidden, dtype=torch.bfloat16, device=device)
        self.layers = [
            Layer(
                self._draw((model.heads + 2 * model.kv_heads) * size, hidden),
                self._draw(hidden, model.heads * size),
                self._draw(2 * model.intermediate, hidden),
                self._draw(hidden, model.intermediate),
                self._draw(2, sequences, model.kv_heads, tokens, size),
            )
            for _ in range(model.layers)
        ]
        self.rotate, self.gate, self.normed = (torch.compile(one) for one in (self._rotate, self._gate, self._normed))

    def _draw(self, *shape: int) -> Any:
        return self.torch.randn(shape, dtype=self.torch.bfloat16, device=self.device).mul_(0.02)

    def _rotate(self, vectors: Any, cosine: Any, sine: Any) -> Any:
        left, right = vectors.chunk(2, -1)
        return self.torch.cat((left * cosine - right * sine, right * cosine + left * sine), -1)

    def _gate(self, both: Any) -> Any:
        gate, up = both.chunk(2, -1)
        return self.torch.nn.functional.silu(gate) * up

    def _normed(self, state: Any, added: Any) -> tuple[Any, Any]:
        """Return the state with what a part of a layer added, and its norm."""
        state = state + added
        return state, self.torch.nn.functional.rms_norm(state, state.shape[-1:], self.norm, 1e-5)

    def step(self, tokens: Any, place: int) -> Any:
        """Return the logits of the last of `tokens`, of shape (sequences, tokens of each), the first at `place`.

        One token each attends to the whole cache; a prompt attends to itself.
        """
        torch, model, size = self.torch, self.model, self.model.head_dim
        many, long = tokens.shape
        angles = torch.arange(place, place + long, device=self.device)[:, None] * self.frequencies
        cosine, sine = angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)
        state = self.embedding[tokens]
        added = torch.zeros_like(state)
        for layer in self.layers:
            state, normed = self.normed(state, added)
            parts = (normed @ layer.qkv.T).view(many, long, -1, size).transpose(1, 2)
            queries, keys, values = parts.split((model.heads, model.kv_heads, model.kv_heads), 1)
            queries, keys = self.rotate(queries, cosine, sine), self.rotate(keys, cosine, sine)
            layer.cache[0, :many, :, place : place + long] = keys
            layer.cache[1, :many, :, place : place + long] = values
            if long == 1:
                seen = self._attend_cache(queries, layer, many, place + 1)
            else:
                seen = torch.nn.functional.scaled_dot_product_attention(
                    queries, keys, values, is_causal=True, enable_gqa=True
                )
            added = seen.transpose(1, 2).reshape(many, long, -1) @ layer.out.T
            state, normed = self.normed(state, added)
            added = self.gate(normed @ layer.gate_up.T) @ layer.down.T
        return self.normed(state[:, -1], added[:, -1])[1] @ self.head.T

    def _attend_cache(self, queries: Any, layer: Layer, many: int, length: int) -> Any:
        """Attend with the query heads of each key head as the rows of one product: its keys are read once."""
        model = self.model
        grouped = queries.view(many, model.kv_heads, model.heads // model.kv_heads, model.head_dim)
        keys, values = layer.cache[:, :many, :, :length]
        if many * model.kv_heads >= MIN_BLOCKS:
            seen = self.torch.nn.functional.scaled_dot_product_attention(grouped, keys, values)
        else:  # torch's attention would leave most of the GPU idle: it does not split the tokens of one sequence
            seen = ((grouped * model.head_dim**-0.5) @ keys.mT).softmax(-1) @ values
        return seen.view(many, model.heads, 1, model.head_dim)

    @property
    def frequencies(self) -> Any:
        """Return the rotation of each pair of numbers by one place."""
        half = self.model.head_dim // 2
        return 500_000.0 ** (-self.torch.arange(half, device=self.device) / half)


def time_steps(torch: Any, model: Architecture, device: Device) -> Iterator[str]:
    """Yield one line for each number of cached sequences and each prompt: measured, planned, their ratio."""
    if model.experts or model.latent or model.windowed or model.qk_norm or model.qkv_bias:
        raise SystemExit(f"{model.name} is no plain Llama: only those are timed")
    torch._dynamo.config.recompile_limit = 64  # each number of sequences may compile once more
    budget = choose_launch(Request(model, dtype="bfloat16"), device).budget
    for sequences, length in CACHED:
        planned = estimate_output_step(model, device, budget, length, sequences)
        measured = time_size(torch, model, (sequences, 1), length - 1)
        yield describe(f"{model.name} {sequences} x {length} tokens, one step", *measured, planned)
    for prompt in PROMPTS:
        planned = estimate_first_token(Request(model, dtype="bfloat16", prompt_tokens=prompt), device, budget)
        measured = time_size(torch, model, (1, prompt), 0)
        yield describe(f"{model.name} prompt of {prompt} tokens", *measured, planned)


def time_size(torch: Any, model: Architecture, shape: tuple[int, int], place: int) -> tuple[float, float]:
    """Return seconds and watts of a step of tokens of this shape, and give its memory back."""
    torch._dynamo.reset()  # what was compiled keeps the last weights alive
    gc.collect()
    torch.cuda.empty_cache()
    with torch.inference_mode():
        built = Llama(torch, model, shape[0], place + shape[1])
        tokens = torch.zeros(shape, dtype=torch.long, device="cuda")
        return time_graph(torch, partial(built.step, tokens, place))


def describe(what: str, seconds: float, watts: float, planned: Step) -> str:
    """Return a line that compares a measured time with a planned one without its host's part."""
    without_host = planned.total_s - planned.host_s
    return (
        f"{what}: measured {seconds * 1e3:.3f} ms, planned {without_host * 1e3:.3f} ms "
        f"({seconds / without_host:.2f} of it; bound by {planned.bound}, {planned.kernels} kernels "
        f"{planned.launch_s * 1e3:.3f} ms, memory {planned.memory_s * 1e3:.3f}, work {planned.compute_s * 1e3:.3f}), "
        f"{watts:.0f} W"
    )


def time_graph(torch: Any, work: Callable[[], Any]) -> tuple[float, float]:
    """Return the median seconds of a replay of one CUDA graph of the work, warm, and the watts while it is replayed."""
    torch.cuda.synchronize()  # what the work reads was written on another stream
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    graph.replay()
    seconds = []
    for _ in range(TIMES):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        seconds.append(float(begin.elapsed_time(end)) / 1e3)
    median = sorted(seconds)[TIMES // 2]
    return median, measure_power(torch, graph)


def measure_power(torch: Any, graph: Any) -> float:
    """Return the median of the watts that the driver reports while a graph is replayed, after a warm second."""
    begin, watts = time.monotonic(), []
    while time.monotonic() < begin + POWER_SECONDS:
        for _ in range(20):
            graph.replay()
        if time.monotonic() > begin + 1:
            watts.append(torch.cuda.power_draw() / 1e3)
        torch.cuda.synchronize()
    return float(sorted(watts)[len(watts) // 2])
