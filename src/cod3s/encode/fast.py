"""The `fast` encoder: a BERT-type sentence encoder on CTranslate2, without torch.

The model is converted once, into the cache folder. In float32 it gives the same bits as sentence-transformers.
"""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.encode.bert import save_bert_engine
from cod3s.encode.protocol import Vectors, length_sorted_batches, unit
from cod3s.encode.weights import NAME, SHA256, minilm_folder, read_weights, weights_file
from cod3s.errors import EncoderError, require
from cod3s.io.disk import cache_folder, existing_file, read_json, replaced_folder, sha256, write_json
from cod3s.io.parts import parts_of, read_whole

_SETTINGS = ("tokenizer.json", "config.json", "sentence_bert_config.json")
_AVX512 = {"avx512f", "avx512cd", "avx512dq", "avx512bw", "avx512vl"}
_BATCH_TOKENS = 512  # small batches stay in the processor's cache: measured in docs/measured/signatures.md


class FastEncoder:
    """Mean-pooled token states, with a single-threaded worker per core and batches of similar length."""

    def __init__(
        self,
        id: str,
        folder: Path,
        tokenizer: Path,
        *,
        dim: int,
        max_tokens: int,
        compute_type: str = "float32",
        threads: int | None = None,
    ) -> None:
        self.id, self.dim = id, dim
        self._tokenizer = _tokenizer(tokenizer, max_tokens)
        self._workers = threads or os.cpu_count() or 1
        options = {"compute_type": compute_type, "inter_threads": self._workers, "intra_threads": 1}
        try:
            self._model = open_engine("Encoder", str(folder), **options)
        except (RuntimeError, ValueError) as error:
            raise EncoderError(
                f"the encoder in {folder} cannot be opened: {error}", hint="copy or export its folder again"
            ) from error

    def encode(self, sentences: Sequence[str]) -> Vectors:
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(sentences))]
        vectors = np.empty((len(ids), self.dim), np.float32)

        def fill(batch: list[int]) -> None:
            vectors[batch] = self._pooled([ids[index] for index in batch])

        batches = length_sorted_batches([len(row) for row in ids], _BATCH_TOKENS)
        with ThreadPoolExecutor(self._workers) as pool:
            list(pool.map(fill, batches))
        return unit(vectors)

    def _pooled(self, ids: list[list[int]]) -> npt.NDArray[np.float32]:
        """The summed states of each row's tokens, which is the mean up to a scale that `unit` removes."""
        states = np.asarray(self._model.forward_batch(ids).last_hidden_state)  # (batch, longest, dim)
        lengths = np.array([len(row) for row in ids])[:, None]  # (batch, 1)
        real = (np.arange(states.shape[1]) < lengths).astype(np.float32)  # (batch, longest)
        pooled: npt.NDArray[np.float32] = np.einsum("btd,bt->bd", states, real)
        return pooled


def open_engine(kind: str, folder: str, **options: Any) -> Any:
    """Open a model of CTranslate2: an `Encoder`, a `Translator`, a `Generator` or a `Whisper`.

    Weights in parts are joined in memory. A separate thread does it, because opening sets the number of OpenMP
    threads of the calling thread, which torch would then use, too.
    """
    _choose_instructions()
    weights = Path(folder) / "model.bin"
    if "files" not in options and parts_of(weights):
        described = {path.name: path.read_bytes() for path in Path(folder).glob("*.json")}
        options["files"] = {**described, weights.name: read_whole(weights)}
    library = require("ctranslate2", "engine")
    opened = getattr(library.models if kind == "Whisper" else library, kind)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(opened, folder, **options).result()


@cache
def _choose_instructions() -> None:
    """Let CTranslate2 use AVX-512 on AMD processors that have it; by default it uses AVX2 there.

    It reads the variable when it first computes; a user's own choice stays.
    """
    try:
        processors = Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        return
    if gains_from_avx512(processors):
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")


def gains_from_avx512(processors: str) -> bool:
    """Whether the content of /proc/cpuinfo describes AMD processors with all that CTranslate2 means by AVX-512."""
    first = processors.partition("\n\n")[0]
    flags = set(first.partition("\nflags")[2].partition("\n")[0].split())
    return "AuthenticAMD" in first and flags >= _AVX512


def open_fast_encoder(folder: Path | None = None, compute_type: str = "float32") -> FastEncoder:
    """The encoder in a model folder, or the default encoder; it is converted when it is first opened."""
    engine_folder, name = _embedded_model() if folder is None else _user_model(folder)
    facts = read_json(engine_folder / "encoder.json")
    return FastEncoder(
        f"{'fast' if compute_type == 'float32' else 'fast-int8'}:{name}@{facts['sha256'][:8]}",
        engine_folder,
        engine_folder / "tokenizer.json",
        dim=facts["dim"],
        max_tokens=facts["max_tokens"],
        compute_type=compute_type,
    )


def _embedded_model() -> tuple[Path, str]:
    cached = cache_folder() / "encoders" / SHA256[:16]
    return (cached if _is_sound(cached) else _convert(minilm_folder(), cached, SHA256)), NAME


def _user_model(folder: Path) -> tuple[Path, str]:
    if not folder.is_dir():
        raise EncoderError(
            f"the fast backend needs a model folder, but {folder} does not exist",
            hint="use --encoder sbert:NAME for a model on the Hugging Face hub",
        )
    _require_mean_pooling(folder)
    digest = sha256(weights_file(folder))
    cached = cache_folder() / "encoders" / _key(folder, digest)
    return (cached if _is_sound(cached) else _convert(folder, cached, digest)), folder.resolve().name


def _key(folder: Path, digest: str) -> str:
    """The name of a conversion: a digest of the weights, the tokenizer and the settings that go into it."""
    parts = [digest] + [sha256(path) for name in _SETTINGS if (path := folder / name).is_file()]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def _convert(folder: Path, cached: Path, digest: str) -> Path:
    """Convert into `cached`, all or nothing, with the checksum of the result next to it."""
    with replaced_folder(cached) as partial:
        config = read_json(folder / "config.json")
        save_bert_engine(read_weights(folder), config, partial)
        copyfile(existing_file(folder / "tokenizer.json"), partial / "tokenizer.json")
        facts = {
            "sha256": digest,
            "engine_sha256": sha256(partial / "model.bin"),
            "dim": config["hidden_size"],
            "max_tokens": _max_tokens(folder, config),
        }
        write_json(partial / "encoder.json", facts)
    return cached


def _is_sound(cached: Path) -> bool:
    """Whether an earlier conversion exists and is unchanged."""
    if not (cached / "encoder.json").is_file() or not (cached / "model.bin").is_file():
        return False
    return bool(read_json(cached / "encoder.json")["engine_sha256"] == sha256(cached / "model.bin"))


def _require_mean_pooling(folder: Path) -> None:
    """Refuse models that do not pool by the mean; plain BERT folders are pooled that way, as in the paper."""
    if not (folder / "modules.json").is_file():
        return
    kinds = [module["type"].rsplit(".", 1)[-1] for module in read_json(folder / "modules.json")]
    extra = set(kinds) - {"Transformer", "Pooling", "Normalize"}
    pooling = read_json(folder / "1_Pooling" / "config.json") if "Pooling" in kinds else {}
    modes = _pooling_modes(pooling)
    if extra or set(modes) - {"mean"}:
        raise EncoderError(
            f"{folder.name} uses {', '.join(sorted(extra) or modes)}; the fast backend only pools by the mean",
            hint="use --encoder sbert:FOLDER",
        )


def _pooling_modes(pooling: dict[str, Any]) -> list[str]:
    """The modes in a Pooling config, which has a flag per mode or, since sentence-transformers 6, their names."""
    flags = [name for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True]
    named = pooling.get("pooling_mode", [])
    modes = [named] if isinstance(named, str) else list(named)
    return modes + [name.removeprefix("pooling_mode_").removesuffix("_tokens") for name in flags]


def _max_tokens(folder: Path, config: dict[str, Any]) -> int:
    path = folder / "sentence_bert_config.json"
    longest = read_json(path).get("max_seq_length") if path.is_file() else None
    return min(int(longest or 512), int(config["max_position_embeddings"]) - 2)


def _tokenizer(path: Path, max_tokens: int) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer
