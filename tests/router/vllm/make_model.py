"""Makes a tiny Llama, in vLLM's own environment: `make_model.py CORPUS.json FOLDER LAYERS HIDDEN STEPS`."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

WORDS = 4_096
POSITIONS = 16_384
START, END, TURN = "<s>", "</s>", "<|turn|>"
CHAT = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
BATCH, LENGTH = 8, 256


def tokenizer(texts: list[str]) -> Any:
    """Return a byte-level BPE of the texts, with a chat template."""
    tokenizers, transformers = importlib.import_module("tokenizers"), importlib.import_module("transformers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=WORDS, special_tokens=[START, END, TURN], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    whole = transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token=START, eos_token=END)
    whole.chat_template = CHAT
    return whole


def model(words: Any, layers: int, hidden: int) -> Any:
    """Return a Llama with random weights."""
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    torch.manual_seed(layers)
    shape = transformers.LlamaConfig(
        hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 128, head_dim=64, intermediate_size=2 * hidden, vocab_size=len(words),
        max_position_embeddings=POSITIONS, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}, bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
    )  # fmt: skip  # a table
    return transformers.LlamaForCausalLM(shape)


def train(llama: Any, words: Any, replies: list[str], steps: int) -> None:
    """Let it read the replies for a few steps, so that it ends its strings now and then."""
    torch = importlib.import_module("torch")
    stream = [token for reply in replies for token in (*words.encode(f"{TURN}assistant\n{reply}"), words.eos_token_id)]
    tokens = torch.tensor(stream)
    optimiser = torch.optim.AdamW(llama.parameters(), lr=2e-3)
    for step in range(steps):
        draw = torch.Generator().manual_seed(step)
        starts = torch.randint(len(tokens) - LENGTH, (BATCH,), generator=draw)
        batch = torch.stack([tokens[start : start + LENGTH] for start in starts])
        loss = llama(input_ids=batch, labels=batch).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        if step % 20 == 0 or step == steps - 1:
            sys.stdout.write(f"step {step}: loss {float(loss):.2f}\n")
            sys.stdout.flush()


def main(corpus: Path, folder: Path, layers: int, hidden: int, steps: int) -> None:
    """Write a model with its tokenizer."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    texts = json.loads(corpus.read_text(encoding="utf-8"))
    words = tokenizer([*texts["pages"], *texts["replies"]])
    llama = model(words, layers, hidden)
    train(llama, words, texts["replies"], steps)
    llama.to(torch.bfloat16).save_pretrained(folder)
    words.save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:6]))
