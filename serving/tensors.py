"""A model's weights, tensor by tensor: numbers, bytes, and the part on each GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from .architecture import INT4_METHODS, VOCAB_STEP, Architecture, Experts, Latent

BYTES = {"bfloat16": Fraction(2), "float16": Fraction(2), "fp8": Fraction(1), "mxfp4": Fraction(17, 32)}
"""Bytes of a number: mxfp4 has 4 bits each and one byte of scale for every 32."""
INT4_BYTES, SCALE_BYTES, ZERO_BYTES = Fraction(1, 2), Fraction(2), Fraction(1, 2)
"""Bytes of an INT4 number, and of the 16-bit scale and the 4-bit zero of its group (AWQ and GPTQ store both)."""


class Share(StrEnum):
    """How tensor parallelism distributes a tensor over GPUs."""

    divided = "divided"
    heads = "heads"  # by key and value heads, which are copied where there are fewer than GPUs
    vocab = "vocab"
    copied = "copied"


@dataclass(frozen=True)
class Tensor:
    """A number of equal matrices of the model."""

    name: str
    rows: int
    columns: int
    copies: int
    share: Share = Share.divided
    linear: bool = True
    """Whether FP8 or INT4 applies: embeddings, the output head, norms, routers and biases stay in 16 bits."""
    expert: bool = False
    extra: bool = False
    """Whether vLLM adds it to the model's own tensors."""

    @property
    def numbers(self) -> int:
        """Return the count of numbers in all copies."""
        return self.rows * self.columns * self.copies

    def count_rows(self, gpus: int, kv_heads: int) -> int:
        """Return how many rows of each matrix a GPU holds, rounded up."""
        if self.share is Share.copied:
            return self.rows
        if self.share is Share.vocab:
            return -(-self.rows // VOCAB_STEP) * VOCAB_STEP // gpus
        if self.share is Share.heads:
            return self.rows // kv_heads * max(1, kv_heads // gpus)
        return -(-self.rows // gpus)


def list_tensors(model: Architecture) -> tuple[Tensor, ...]:
    """Return all tensors of a model; rows are what tensor parallelism divides."""
    return tuple(_yield_tensors(model))


def _yield_tensors(model: Architecture) -> Iterator[Tensor]:
    yield Tensor("embedding", model.vocab, model.hidden, 1, Share.vocab, linear=False)
    if not model.tied:
        yield Tensor("output head", model.vocab, model.hidden, 1, Share.vocab, linear=False)
    yield Tensor("norms", model.hidden, 1, model.norms * model.layers + 1, Share.copied, linear=False)
    yield from _yield_latent_attention(model, model.latent) if model.latent else _yield_attention(model)
    if model.dense_layers:
        yield from _yield_gated_mlp("mlp", model.hidden, model.intermediate, model.dense_layers)
    if model.experts:
        yield from _yield_mixture(model, model.experts)


def _yield_gated_mlp(name: str, hidden: int, width: int, copies: int, *, expert: bool = False) -> Iterator[Tensor]:
    """Yield gate, up and down of a gated MLP; down is transposed, because its columns are divided."""
    yield Tensor(f"{name} gate and up", width, hidden, 2 * copies, expert=expert)
    yield Tensor(f"{name} down", width, hidden, copies, expert=expert)


def _yield_attention(model: Architecture) -> Iterator[Tensor]:
    layers, size = model.layers, model.head_dim
    yield Tensor("queries", model.heads * size, model.hidden, layers)
    yield Tensor("keys and values", model.kv_heads * size, model.hidden, 2 * layers, Share.heads)
    yield Tensor("attention output", model.heads * size, model.hidden, layers)
    if model.qkv_bias:
        yield Tensor("query biases", model.heads * size, 1, layers, linear=False)
        yield Tensor("key and value biases", model.kv_heads * size, 1, 2 * layers, Share.heads, linear=False)
    if model.qk_norm:
        yield Tensor("query and key norms", size, 1, 2 * layers, Share.copied, linear=False)
    if model.inner_bias:
        yield Tensor("attention output biases", model.hidden, 1, layers, Share.copied, linear=False)
        yield Tensor("sinks", model.heads, 1, layers, linear=False)


def _yield_latent_attention(model: Architecture, latent: Latent) -> Iterator[Tensor]:
    layers, rank = model.layers, latent.kv_rank
    queries = model.heads * (latent.nope + latent.rope)
    if latent.q_rank:
        yield Tensor("query compression", latent.q_rank, model.hidden, layers, Share.copied)
        yield Tensor("query compression norms", latent.q_rank, 1, layers, Share.copied, linear=False)
    yield Tensor("queries", queries, latent.q_rank or model.hidden, layers)
    yield Tensor("key and value compression", rank + latent.rope, model.hidden, layers, Share.copied)
    yield Tensor("key and value compression norms", rank, 1, layers, Share.copied, linear=False)
    yield Tensor("keys and values", model.heads * (latent.nope + latent.value), rank, layers)
    yield Tensor("attention output", model.heads * latent.value, model.hidden, layers)
    absorbed = model.heads * (latent.nope + latent.value)
    yield Tensor("absorbed keys and values", absorbed, rank, layers, linear=False, extra=True)


def _yield_mixture(model: Architecture, experts: Experts) -> Iterator[Tensor]:
    layers = model.layers - experts.dense_layers
    yield Tensor("router", experts.count, model.hidden, layers, Share.copied, linear=False)
    if experts.corrected:
        yield Tensor("router corrections", experts.count, 1, layers, Share.copied, linear=False)
    yield from _yield_gated_mlp("expert", model.hidden, experts.width, layers * experts.count, expert=True)
    if experts.shared_width:
        yield from _yield_gated_mlp("shared expert", model.hidden, experts.shared_width, layers)
    if model.inner_bias:
        yield Tensor("router biases", experts.count, 1, layers, Share.copied, linear=False)
        yield Tensor("expert gate and up biases", experts.width, 1, 2 * layers * experts.count, linear=False)
        yield Tensor("expert down biases", model.hidden, 1, layers * experts.count, Share.copied, linear=False)


def count_parameters(model: Architecture) -> int:
    """Return the number of parameters of a model, as its makers count them."""
    return sum(tensor.numbers for tensor in list_tensors(model) if not tensor.extra)


def count_active_parameters(model: Architecture, tokens: float = 1.0) -> float:
    """Return how many parameters a step of `tokens` tokens multiplies, counting the expected share of experts.

    The embedding is looked up, not multiplied, unless it is the output head too. One token uses `used` experts of a
    layer; b tokens with independent, even routes use count * (1 - (1 - used / count) ** b) of them.
    """
    total = 0.0
    for tensor in list_tensors(model):
        if tensor.extra or (tensor.name == "embedding" and not model.tied):
            continue
        total += tensor.numbers * (
            compute_expert_share(model.experts, tokens) if tensor.expert and model.experts else 1.0
        )
    return total


def compute_expert_share(experts: Experts, tokens: float) -> float:
    """Return the expected share of experts that some tokens use, with even and independent routes."""
    return float(1.0 - (1.0 - experts.used / experts.count) ** tokens)


def bytes_per_number(tensor: Tensor, model: Architecture, precision: str) -> Fraction:
    """Return the bytes of one number of a tensor, in the precision of the launch."""
    if tensor.expert and model.stored == "mxfp4":
        return BYTES["mxfp4"]
    if model.stored in INT4_METHODS:
        group = model.group if model.group > 0 else model.hidden  # most columns are as long as the hidden size
        return INT4_BYTES + (SCALE_BYTES + ZERO_BYTES) / group if tensor.linear else BYTES["bfloat16"]
    return BYTES["fp8"] if tensor.linear and precision == "fp8" else BYTES["bfloat16"]


def count_bytes_per_gpu(model: Architecture, precision: str, gpus: int) -> int:
    """Return the bytes of weights on each GPU; INT4 and MXFP4 follow from the model, FP8 from `precision`."""
    total = Fraction(0)
    for tensor in list_tensors(model):
        numbers = tensor.count_rows(gpus, model.kv_heads) * tensor.columns * tensor.copies
        total += numbers * bytes_per_number(tensor, model, precision)
    return -(-total.numerator // total.denominator)
