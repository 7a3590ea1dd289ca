"""A small server with the OpenAI-compatible API around a causal language model of transformers.

    python tests/causal_server.py FOLDER [--port 8011] [--bfloat16]

Sampling only, one request at a time: enough to test clients against a real model.
"""

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

SENTENCES = [
    "he called a locksmith and waited outside",
    "she slept in the car until morning",
    "the landlord let him in after an hour",
    "it rained all night and the river rose",
]


class Asked(BaseModel):
    model: str
    prompt: str | None = None
    messages: list[dict[str, str]] | None = None
    n: int = 1
    max_tokens: int = 64
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None


class CausalModel:
    """A model with its tokenizer; replies depend on the seed alone where one is sent."""

    def __init__(self, folder: Path, dtype: torch.dtype = torch.float32) -> None:
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self._model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
        self._turn = threading.Lock()

    def write(self, asked: Asked) -> dict[str, Any]:
        """The texts and the usage that a reply reports."""
        if asked.messages is None:
            ids = self._tokenizer(asked.prompt or "", return_tensors="pt")["input_ids"]
        else:
            text = self._tokenizer.apply_chat_template(asked.messages, tokenize=False, add_generation_prompt=True)
            ids = self._tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
        greedy = asked.temperature == 0
        rows = ids.repeat(1 if greedy else asked.n, 1)
        with self._turn, torch.no_grad():
            if asked.seed is not None:
                torch.manual_seed(asked.seed)
            written = self._model.generate(
                rows,
                attention_mask=torch.ones_like(rows),
                past_key_values=self._read(ids, len(rows)),
                do_sample=not greedy,
                max_new_tokens=asked.max_tokens,
                pad_token_id=self._tokenizer.eos_token_id,
                **({} if greedy else {"temperature": asked.temperature, "top_p": asked.top_p, "top_k": 0}),
            )[:, ids.shape[1] :]
        ends = (written == self._tokenizer.eos_token_id).int()
        lengths = [int(row.argmax()) + 1 if row.any() else len(row) for row in ends]
        return {
            "texts": self._tokenizer.batch_decode(written, skip_special_tokens=True),
            "usage": {"prompt_tokens": ids.shape[1], "completion_tokens": sum(lengths)},
        }

    def _read(self, ids: torch.Tensor, rows: int) -> transformers.DynamicCache:
        """The cache of all tokens but the last, which are read once for all rows."""
        cache = transformers.DynamicCache(config=self._model.config)
        if ids.shape[1] > 1:
            self._model.model(ids[:, :-1], past_key_values=cache)
            cache.batch_repeat_interleave(rows)
        return cache


def make_app(folder: Path, dtype: torch.dtype = torch.float32) -> FastAPI:
    app, model = FastAPI(), CausalModel(folder, dtype)

    @app.post("/v1/completions")
    def complete(asked: Asked) -> dict[str, Any]:
        if asked.prompt is None:
            raise HTTPException(400, "no prompt")
        reply = model.write(asked)
        return {"choices": [{"text": text} for text in reply["texts"]], "usage": reply["usage"]}

    @app.post("/v1/chat/completions")
    def chat(asked: Asked) -> dict[str, Any]:
        if asked.messages is None:
            raise HTTPException(400, "no messages")
        reply = model.write(asked)
        choices = [{"message": {"role": "assistant", "content": text}} for text in reply["texts"]]
        return {"choices": choices, "usage": reply["usage"]}

    return app


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server that runs in a thread."""
    server = uvicorn.Server(uvicorn.Config(make_app(folder), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join()


def make_tiny_model(folder: Path) -> Path:
    """A random Llama of two layers and a tokenizer trained on a few sentences, saved like a real one."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    wrapped.chat_template = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    wrapped.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(wrapped),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        bos_token_id=0,
        eos_token_id=1,
        initializer_range=0.3,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8011)
    # Fewer bytes to read per token. With int8 (quantize_dynamic), only 42 % of SmolLM2's likeliest next tokens
    # stay the same; with bfloat16, 98 % do.
    parser.add_argument("--bfloat16", action="store_true")
    options = parser.parse_args()
    dtype = torch.bfloat16 if options.bfloat16 else torch.float32
    uvicorn.run(make_app(options.folder, dtype), port=options.port, log_level="warning")
