"""Says which texts a grammar accepts, in vLLM's environment; input: JSON of grammar, texts, model folder."""

from __future__ import annotations

import importlib
import json
import sys


def main() -> None:
    """Print the verdicts as JSON."""
    asked = json.load(sys.stdin)
    xgrammar, transformers = importlib.import_module("xgrammar"), importlib.import_module("transformers")
    words = transformers.AutoTokenizer.from_pretrained(asked["model"])
    compiler = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo.from_huggingface(words), max_threads=1)
    grammar = compiler.compile_grammar(asked["grammar"])
    verdicts = []
    for text in asked["texts"]:
        matcher = xgrammar.GrammarMatcher(grammar, terminate_without_stop_token=True)
        verdicts.append(bool(matcher.accept_string(text)) and bool(matcher.is_completed()))
    json.dump(verdicts, sys.stdout)


if __name__ == "__main__":
    main()
