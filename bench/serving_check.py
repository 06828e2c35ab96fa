"""Hold the planner's memory to a real GPU: allocate a plan's weights and cache in torch, and compare bytes.

    python -m bench.serving_check [--model NAME|config.json ...] [--share 0.5]

For each model the tensors of one GPU's part are allocated one by one with the shapes that the planner counts, then as
many blocks of the cache as `--share` of what it says is left, layer by layer; `torch.cuda.memory_allocated` must agree
within 5 %. Then matrix work, a reading of memory and short kernels in a CUDA graph are timed, beside what the planner
assumes of them, and whole steps of Llamas with random weights (`bench.serving_times`) beside the planned times.
Exit code 0: all bytes agree; 1: one does not; 3: there is no GPU here, or no torch.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any

from alphaloom.serving import DEVICES, Architecture, Request, find_model
from alphaloom.serving.assumptions import COMPUTE_EFFICIENCY, LAUNCH_S, MEMORY_EFFICIENCY
from alphaloom.serving.choice import choose_launch
from alphaloom.serving.devices import GIB, Device
from alphaloom.serving.memory import MemoryBudget, count_token_bytes
from alphaloom.serving.tensors import bytes_per_number, list_tensors

from .serving_times import time_steps

USUAL = ("Llama-3.2-1B", "Llama-3.1-8B", "Qwen3-8B", "Gemma-2-9B", "Phi-4", "gpt-oss-20b", "Llama-3.1-70B")
TIMED = ("Llama-3.2-1B", "Llama-3.2-3B", "Llama-3.1-8B", "Phi-4")
TOLERANCE = 0.05


def torch_with_gpu() -> Any:
    """Return torch where it sees a GPU; None elsewhere."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def nearest(torch: Any) -> Device:
    """Return the device of the table that this GPU is, by name and memory."""
    title, memory = torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).total_memory
    named = [one for one in DEVICES.values() if one.gpu and one.name.partition("-")[0].upper() in title.upper()]
    return min(named or [one for one in DEVICES.values() if one.gpu], key=lambda one: abs(one.memory - memory))


def weights(torch: Any, model: Architecture, chosen: MemoryBudget) -> list[Any]:
    """Allocate one GPU's part of the weights, each matrix for itself: 16 bits, or bytes where they are fewer."""
    held = []
    for tensor in list_tensors(model):
        shape = (tensor.count_rows(chosen.gpus, model.kv_heads), tensor.columns)
        each = bytes_per_number(tensor, model, model.stored or chosen.precision)
        for _ in range(tensor.copies):
            if each == 2:
                held.append(torch.empty(shape, dtype=torch.bfloat16, device="cuda"))
            else:
                held.append(torch.empty(int(shape[0] * shape[1] * each), dtype=torch.uint8, device="cuda"))
    return held


def cache(torch: Any, model: Architecture, chosen: MemoryBudget, share: float) -> tuple[list[Any], int]:
    """Allocate a share of the cache, layer by layer in whole blocks; return it with the bytes that it should take."""
    of_block = count_token_bytes(model, chosen.kv_bytes, chosen.gpus) * chosen.rules.block
    blocks = max(1, int(chosen.cache * share) // of_block)
    shape = (blocks, chosen.rules.block, model.count_cached_per_gpu(chosen.gpus))
    kind = torch.bfloat16 if chosen.kv_bytes == 2 else torch.uint8
    return [torch.empty(shape, dtype=kind, device="cuda") for _ in range(model.layers)], blocks * of_block


def compared(torch: Any, model: Architecture, device: Device, share: float) -> bool:
    """Compare one model's bytes, and say them."""
    chosen = choose_launch(Request(model), device).budget
    before = torch.cuda.memory_allocated()
    held = weights(torch, model, chosen)
    for_weights = torch.cuda.memory_allocated() - before
    kept, expected = cache(torch, model, chosen, share)
    for_cache = torch.cuda.memory_allocated() - before - for_weights
    apart = (for_weights / chosen.weights - 1, for_cache / expected - 1)
    well = all(abs(one) <= TOLERANCE for one in apart)
    say(
        f"{model.name:<16} {chosen.gpus} GPU {chosen.precision}: "
        f"weights {for_weights / GIB:.3f} of {chosen.weights / GIB:.3f} GiB "
        f"planned ({apart[0]:+.2%}), cache {for_cache / GIB:.3f} of {expected / GIB:.3f} ({apart[1]:+.2%})"
        f"{'' if well else '  DISAGREES'}"
    )
    del held, kept
    torch.cuda.empty_cache()
    return well


def efficiencies(torch: Any, device: Device) -> None:
    """Say what part of the device's peak and bandwidth simple torch code reaches."""
    side, size = 8192, 2 * GIB
    left, right = (torch.randn(side, side, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    work = 2 * side**3 / timed(torch, lambda: left @ right)
    long = torch.zeros(size // 2, dtype=torch.bfloat16, device="cuda")
    read = size / timed(torch, lambda: long.sum())
    reached, share = work / device.tflops / 1e12, read / device.bandwidth
    say(f"matrix work {work / 1e12:.0f} TFLOPS, {reached:.0%} of {device.tflops:.0f}; assumed {COMPUTE_EFFICIENCY:.0%}")
    say(f"reading {read / 1e9:.0f} GB/s, {share:.0%} of {device.bandwidth / 1e9:.0f}; assumed {MEMORY_EFFICIENCY:.0%}")


def launches(torch: Any, kernels: int = 1000) -> None:
    """Say how long a short kernel in a CUDA graph takes."""
    small, graph = torch.zeros(4096, device="cuda"), torch.cuda.CUDAGraph()
    small.add_(1)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(kernels):
            small.add_(1)
    each = timed(torch, graph.replay) / kernels
    say(f"a short kernel in a CUDA graph {each * 1e6:.1f} microseconds; assumed {LAUNCH_S * 1e6:.1f}")


def timed(torch: Any, work: Any, times: int = 20) -> float:
    """Return the seconds of one run, warm."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    work()
    begin.record()
    for _ in range(times):
        work()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1e3 / times


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Compare the models that fit, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=list(USUAL), metavar="NAME")
    parser.add_argument("--share", type=float, default=0.5, help="part of the planned cache to allocate")
    parser.add_argument("--timed", nargs="*", default=list(TIMED), metavar="NAME", help="Llamas whose steps are timed")
    asked = parser.parse_args()
    torch = torch_with_gpu()
    if torch is None:
        say("There is no GPU here that torch can use: nothing was compared.")
        return 3
    device = nearest(torch)
    memory = torch.cuda.get_device_properties(0).total_memory
    say(
        f"{torch.cuda.get_device_name(0)}, {memory / GIB:.1f} GiB; "
        f"the table has {device.title}, {device.memory / GIB:.1f} GiB"
    )
    well = [compared(torch, find_model(name), device, asked.share) for name in asked.model]
    efficiencies(torch, device)
    launches(torch)
    for name in asked.timed:
        for line in time_steps(torch, find_model(name), device):
            say(line)
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
