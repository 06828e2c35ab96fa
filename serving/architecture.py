"""What a model is made of: the numbers from which its memory and its work follow."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Architecture", "Experts", "Latent"]

VOCAB_STEP = 64  # vLLM pads the vocabulary to a multiple of this


@dataclass(frozen=True)
class Experts:
    """A layer of experts: each token goes to `used` of `count`, and to the shared ones."""

    count: int
    used: int
    width: int
    shared_width: int = 0
    dense_layers: int = 0
    """How many of the first layers have an ordinary MLP in place of experts."""
    corrected: bool = False
    """Whether the router carries one more number for each expert (DeepSeek-V3)."""


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: a compressed vector of each token is cached, not its keys and values."""

    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int


@dataclass(frozen=True)
class Architecture:
    """A decoder's numbers; `windowed` of its layers see only the last `window` tokens."""

    name: str
    source: str
    kind: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    positions: int
    tied: bool = False
    window: int = 0
    windowed: int = 0
    norms: int = 2
    qk_norm: bool = False
    qkv_bias: bool = False
    inner_bias: bool = False
    """Whether output projection, router and experts have biases too, and each head a sink (gpt-oss)."""
    experts: Experts | None = None
    latent: Latent | None = None
    stored: str = ""
    """The precision that the weights come in where it is not 16 bits: fp8 or mxfp4."""
    unseen: str = ""
    """What the numbers leave out, in words."""

    @property
    def dense_layers(self) -> int:
        """Return how many layers have an ordinary MLP."""
        return self.experts.dense_layers if self.experts else self.layers

    @property
    def cached_numbers(self) -> int:
        """Return how many numbers a layer keeps of a token, over all heads."""
        if self.latent:
            return self.latent.kv_rank + self.latent.rope
        return 2 * self.kv_heads * self.head_dim

    def splits(self, gpus: int) -> bool:
        """Tell whether tensor parallelism over so many GPUs is possible: heads and widths divide."""
        widths = [self.intermediate] if self.dense_layers else []
        widths += [self.experts.width, self.experts.shared_width] if self.experts else []
        shared = self.latent is not None or self.kv_heads % gpus == 0 or gpus % self.kv_heads == 0
        return shared and all(width % gpus == 0 for width in (self.heads, self.padded_vocab, *widths))

    @property
    def padded_vocab(self) -> int:
        """Return the rows of the embedding as vLLM pads them."""
        return -(-self.vocab // VOCAB_STEP) * VOCAB_STEP

    def cached_per_gpu(self, gpus: int) -> int:
        """Return how many numbers of a token a layer keeps on each GPU.

        Key and value heads are dealt out, and copied where there are fewer of them than GPUs; a compressed vector is
        the same for all heads, so each GPU keeps the whole of it.
        """
        if self.latent:
            return self.cached_numbers
        return 2 * max(1, self.kv_heads // gpus) * self.head_dim
