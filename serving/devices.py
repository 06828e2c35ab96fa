"""Devices: a table of the makers' figures.

Sources. Peak dense tensor throughput (the makers' figures without sparsity), bandwidth and links: NVIDIA H100 Tensor
Core GPU datasheet (SXM5: 989.4 TFLOPS BF16, 1978.9 FP8, 3.35 TB/s, NVLink 900 GB/s), NVIDIA H200 datasheet (SXM: the
same processor, 141 GB, 4.8 TB/s), NVIDIA A100 datasheet (SXM4: 312 TFLOPS BF16, no FP8, 80 GB at 2,039 GB/s, 40 GB at
1,555 GB/s, NVLink 600 GB/s), NVIDIA L40S datasheet (362.05 TFLOPS BF16, 733 FP8, 48 GB at 864 GB/s, PCIe 4.0 x16 with
64 GB/s both ways, no NVLink), NVIDIA L40 datasheet (181.05 TFLOPS BF16, 362 FP8, 48 GB at 864 GB/s, PCIe 4.0 x16).
Power limits are the maximum of the same datasheets: H100 and H200 SXM 700 W, A100 SXM 400 W, L40S 350 W, L40 300 W.
Makers give links as the sum of both directions; here it is one direction. Usable memory is what the CUDA driver gives
to a process as the device's total (as PyTorch reports it, ECC on), less than the nominal size. Batch sizes are vLLM
0.32's own defaults (`EngineArgs.get_batch_defaults`). The figures of the CPU are assumptions.

Confidential computing: NVIDIA has it since Hopper ("Confidential Computing on NVIDIA H100 GPUs for Secure and
Trustworthy AI"); Ampere and Ada Lovelace have none. A Hopper host gives a confidential machine one GPU or all eight,
and does not encrypt NVLink between them. Its cost was measured by others on one GPU: under 7 % for most requests, near
none for large models (arXiv 2409.03992, H100 and H200), 4 to 8 % of throughput (arXiv 2509.18886, H100).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .assumptions import ALL_REDUCE_S, CPU_LAUNCH_S, LAUNCH_S
from .errors import ServingError

GIB, GB = 2**30, 10**9


@dataclass(frozen=True)
class Device:
    """One accelerator, or the processor of a machine."""

    name: str
    title: str
    memory: int
    """Bytes that a process can have."""
    tflops: float
    """Peak dense BF16."""
    fp8_tflops: float | None
    """Peak dense FP8; None where the device has none."""
    bandwidth: float
    """Bytes a second from its memory."""
    link: str
    link_bandwidth: float
    """Bytes a second to another device, one way."""
    link_latency_s: float
    """Assumed minimum seconds of one all-reduce."""
    batched_tokens: int
    """Tokens that one step processes."""
    block: int = 16
    """Tokens of a block of the cache."""
    accelerator: str = ""
    """Ray's name of it; empty where Ray has none."""
    watts: float | None = None
    """Its power limit; None where it is not known."""
    confidential: bool = False
    """Whether it has a mode for confidential computing."""
    launch_s: float = LAUNCH_S
    """Assumed seconds of a short kernel, with its launch."""

    @property
    def nvlink(self) -> bool:
        """Return whether devices of a host are connected by NVLink."""
        return self.link.startswith("NVLink")

    @property
    def gpu(self) -> bool:
        """Return whether it is a GPU."""
        return self.name != "cpu"


def _make_gpu(  # noqa: PLR0913 - the columns of the table below
    name: str,
    title: str,
    gib: float,
    speeds: tuple[float, float | None, float],
    link: tuple[str, float],
    batched_tokens: int,
    accelerator: str,
    watts: float,
) -> Device:
    tflops, fp8, bandwidth = speeds
    return Device(
        name, title, int(gib * GIB), tflops, fp8, bandwidth * GB, link[0], link[1] * GB, ALL_REDUCE_S[link[0]],
        batched_tokens, accelerator=accelerator, watts=watts, confidential=name in CONFIDENTIAL,
    )  # fmt: skip  # a table


CONFIDENTIAL = ("h100", "h200")
HOPPER, AMPERE, PCIE = ("NVLink 4", 450.0), ("NVLink 3", 300.0), ("PCIe 4.0 x16", 32.0)
DEVICES = {
    one.name: one
    for one in (
        _make_gpu("h100", "NVIDIA H100 80 GB SXM", 79.1, (989.4, 1978.9, 3350.0), HOPPER, 8192, "H100", 700),
        _make_gpu("h200", "NVIDIA H200 141 GB SXM", 139.7, (989.4, 1978.9, 4800.0), HOPPER, 8192, "H200", 700),
        _make_gpu("a100", "NVIDIA A100 80 GB SXM", 79.1, (312.0, None, 2039.0), AMPERE, 2048, "A100-80G", 400),
        _make_gpu("a100-40", "NVIDIA A100 40 GB SXM", 39.4, (312.0, None, 1555.0), AMPERE, 2048, "A100-40G", 400),
        _make_gpu("l40s", "NVIDIA L40S 48 GB", 44.4, (362.05, 733.0, 864.0), PCIE, 2048, "L40S", 350),
        _make_gpu("l40", "NVIDIA L40 48 GB", 44.4, (181.05, 362.0, 864.0), PCIE, 2048, "", 300),
        Device("cpu", "the processor", 0, 2.0, None, 100.0 * GB, "none", 1.0, 0.0, 2048, 128, launch_s=CPU_LAUNCH_S),
    )
}
CONFIDENTIAL_COST = (
    "others measured it on one GPU: under 7 % of a request's time, near none for large models (arXiv 2409.03992), "
    "4 to 8 % of throughput (arXiv 2509.18886)"
)


def describe_confidential(device: Device, gpus: int) -> str:
    """Return whether a launch can be confidential, and at what cost, in words."""
    if not device.gpu:
        return "depends on the processor (Intel TDX, AMD SEV-SNP): not planned here"
    if not device.confidential:
        return f"{device.title} has no mode for it; NVIDIA's have one since Hopper (H100, H200)"
    if gpus == 1:
        return f"cost not in these times; {CONFIDENTIAL_COST}"
    return "one GPU or all 8 of a host, NVLink between them not encrypted; the cost on several GPUs is not measured"


def find_device(name: str, memory_gb: float | None = None) -> Device:
    """Return a device by name; `memory_gb` is required for a CPU and refused for a GPU."""
    device = DEVICES.get(name.lower())
    if device is None:
        raise ServingError(f"no device is known as {name!r}", field="--gpu", got=name, allowed=list(DEVICES))
    if device.gpu:
        if memory_gb is not None:
            raise ServingError(
                f"--memory-gb is for --gpu cpu; a {device.name} has {device.memory / GIB:.1f} GiB",
                field="--memory-gb",
                hint="Leave it out, or give a part with --gpu-memory-utilization.",
            )
        return device
    if memory_gb is None:
        raise ServingError("the memory of this machine cannot be read", field="--memory-gb", hint="Add --memory-gb N.")
    if not 0 < memory_gb < float("inf"):
        raise ServingError(
            f"a machine with {memory_gb:g} GB of memory serves nothing",
            field="--memory-gb",
            got=memory_gb,
            allowed="a number above 0",
        )
    return replace(device, memory=int(memory_gb * GB))
