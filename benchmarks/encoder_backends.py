"""The backends that were tried for the `fast` encoder, side by side in one run.

    pip install -e '.[encode]' onnxruntime onnx onnxscript
    python benchmarks/encoder_backends.py [SENTENCES]

sentence-transformers is the reference. Each backend takes turns in rounds; the ratio is the median over rounds.
"""

import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from time import perf_counter

import ctranslate2
import numpy as np
import torch
from side_by_side import everyday_sentences
from tokenizers import Tokenizer
from transformers import AutoModel

from cod3s.encode import load_encoder
from cod3s.encode.bert import save_bert_engine
from cod3s.encode.protocol import length_sorted_batches, unit
from cod3s.encode.weights import minilm_folder, read_weights
from cod3s.io.disk import read_json
from cod3s.signatures import random_code

ROUNDS = 5
Batch = list[list[int]]
Forward = Callable[[Batch], np.ndarray]  # token ids → states (batch, longest, dim)


def padded(ids: Batch) -> tuple[np.ndarray, np.ndarray]:
    longest = max(map(len, ids))
    tokens = np.array([row + [0] * (longest - len(row)) for row in ids], np.int64)
    mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in ids], np.int64)
    return tokens, mask


class Backend:
    """Tokenise, batch by length, run, pool: the same around every engine."""

    def __init__(self, forward: Forward, workers: int, batch_tokens: int) -> None:
        self.forward, self.workers, self.batch_tokens = forward, workers, batch_tokens
        self.tokenizer = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)

    def encode(self, sentences: list[str]) -> np.ndarray:
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch_fast(sentences)]
        vectors = np.empty((len(ids), 384), np.float32)

        def fill(batch: list[int]) -> None:
            rows = [ids[index] for index in batch]
            _, mask = padded(rows)
            vectors[batch] = np.einsum("btd,bt->bd", self.forward(rows), mask.astype(np.float32))

        with ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(fill, length_sorted_batches([len(row) for row in ids], self.batch_tokens)))
        return unit(vectors)


def torch_forward(threads: int) -> Forward:
    model = AutoModel.from_pretrained(minilm_folder()).eval()
    torch.set_num_threads(threads)

    def forward(ids: Batch) -> np.ndarray:
        tokens, mask = padded(ids)
        with torch.inference_mode():
            output = model(input_ids=torch.from_numpy(tokens), attention_mask=torch.from_numpy(mask))
        states: np.ndarray = output.last_hidden_state.numpy()
        return states

    return forward


def onnx_forward(folder: Path, threads: int) -> Forward:
    import onnxruntime

    path = folder / "model.onnx"
    if not path.exists():
        model = AutoModel.from_pretrained(minilm_folder(), attn_implementation="eager").eval()
        example = (torch.ones(2, 8, dtype=torch.long), torch.ones(2, 8, dtype=torch.long))
        sizes = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("longest", min=1)}
        program = torch.onnx.export(
            model,
            example,
            input_names=["input_ids", "attention_mask"],
            dynamic_shapes={"input_ids": sizes, "attention_mask": sizes},
            dynamo=True,
        )
        program.save(str(path))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def forward(ids: Batch) -> np.ndarray:
        tokens, mask = padded(ids)
        states: np.ndarray = session.run(None, {"input_ids": tokens, "attention_mask": mask})[0]
        return states

    return forward


def engine_forward(folder: Path, compute_type: str, inter: int, intra: int) -> Forward:
    model = ctranslate2.Encoder(str(folder), compute_type=compute_type, inter_threads=inter, intra_threads=intra)
    return lambda ids: np.asarray(model.forward_batch(ids).last_hidden_state)


def backends(folder: Path) -> dict[str, Backend]:
    (folder / "engine").mkdir()
    config = read_json(minilm_folder() / "config.json")
    save_bert_engine(read_weights(minilm_folder()), config, folder / "engine")
    made: dict[str, Backend] = {}
    for inter, intra in ((1, 2), (2, 1)):
        for batch_tokens in (512, 2048, 8192):
            forward = engine_forward(folder / "engine", "float32", inter, intra)
            made[f"ctranslate2 float32, {inter} x {intra} threads, {batch_tokens} tokens"] = Backend(
                forward, inter, batch_tokens
            )
    made["ctranslate2 int8, 2 x 1 threads, 512 tokens"] = Backend(
        engine_forward(folder / "engine", "int8", 2, 1), 2, 512
    )
    made["onnxruntime float32, 1 x 2 threads, 512 tokens"] = Backend(onnx_forward(folder, 2), 1, 512)
    made["onnxruntime float32, 2 x 1 threads, 512 tokens"] = Backend(onnx_forward(folder, 1), 2, 512)
    made["torch float32, 2 threads, 2048 tokens"] = Backend(torch_forward(2), 1, 2048)
    return made


def main() -> None:
    sentences = everyday_sentences(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    reference = load_encoder("sbert")
    wanted = reference.encode(sentences)
    code = random_code(256, 384)
    with tempfile.TemporaryDirectory() as folder:
        tried = backends(Path(folder))
        seconds: dict[str, list[float]] = {name: [] for name in tried}
        vectors = {name: backend.encode(sentences) for name, backend in tried.items()}
        for _ in range(ROUNDS):
            start = perf_counter()
            reference.encode(sentences)
            base = perf_counter() - start
            for name, backend in tried.items():
                start = perf_counter()
                backend.encode(sentences)
                seconds[name].append(base / (perf_counter() - start))
    print("| backend | ratio to sentence-transformers | equal bits of 256 |\n|---|---|---|")
    for name, ratios in seconds.items():
        equal = (code.sign(vectors[name]) == code.sign(wanted)).mean()
        print(f"| {name} | {median(ratios):.2f} | {100 * equal:.3f} % |")


if __name__ == "__main__":
    main()
