"""The peer: the two stages written with transformers' `generate` and forward passes, batched, with its cache.

Torch models in, the same lists out as the engine's stages give; only used to be measured against.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cod3s.bench.random_bundle import INVERSE, RELATION, RandomBundle
from cod3s.errors import require
from cod3s.model.roles import tag

_SCORED_TOGETHER = 100  # candidates a forward pass: their logits alone are 80 MB

Ids = tuple[int, ...]


class Peer:
    """The four models of a random bundle, each playing its role on torch."""

    def __init__(self, bundle: RandomBundle, threads: int) -> None:
        self._torch, self._threads = require("torch", "train"), threads
        self._bundle, self._words = bundle, bundle.vocabulary

    def find_signatures(self, sources: Sequence[str], beam: int) -> list[list[Ids]]:
        """Stage 1: a beam over bits."""
        start = (self._words.id(tag(RELATION, "signature")),)
        length = len(self._words.signature.groups)
        others = [number for number in range(len(self._words)) if number < self._words.first_signature]
        return self._generate(
            "signature",
            [(source, start) for source in sources],
            beam,
            max_new_tokens=length,
            min_new_tokens=length,
            suppress_tokens=others,
            renormalize_logits=True,  # among the bits, as the engine does
        )

    def write_sentences(
        self, source: str, signatures: Sequence[Ids], beam: int, max_tokens: int
    ) -> list[list[Ids]]:
        """Stage 2: a beam after each signature, all in one batch."""
        start = self._words.id(tag(RELATION, "sentence"))
        rows = [(source, (start, *signature)) for signature in signatures]
        return self._generate("sentence", rows, beam, max_new_tokens=max_tokens)

    def score_signatures(self, source: str, signatures: Sequence[Ids]) -> list[float]:
        """The mean log p(source given signature)."""
        start = self._words.id(tag(RELATION, "inverse"))
        text = self._words.encode_text(source)
        return self._score("inverse", [("", (start, *signature)) for signature in signatures], text)

    def score_sentences(self, source: str, sentences: Sequence[str]) -> list[float]:
        """The mean log p(source given sentence)."""
        start = self._words.id(tag(INVERSE, "plain"))
        return self._score("backward", [(one, (start,)) for one in sentences], self._words.encode_text(source))

    def _generate(
        self, name: str, rows: Sequence[tuple[str, Ids]], beam: int, **options: int | list[int]
    ) -> list[list[Ids]]:
        with self._computing():
            found = self._bundle.models[name].generate(
                **self._read([source for source, _ in rows]),
                decoder_input_ids=self._torch.tensor([prefix for _, prefix in rows]),
                decoder_start_token_id=rows[0][1][0],
                num_beams=beam,
                num_return_sequences=beam,
                early_stopping=True,
                do_sample=False,
                **options,
            )
        written = [tuple(row[len(rows[0][1]) :]) for row in found.tolist()]
        return [written[start : start + beam] for start in range(0, len(written), beam)]

    def _score(self, name: str, rows: Sequence[tuple[str, Ids]], text: Sequence[int]) -> list[float]:
        scores: list[float] = []
        wanted = self._torch.tensor([*text, self._words.end])
        for start in range(0, len(rows), _SCORED_TOGETHER):
            own = rows[start : start + _SCORED_TOGETHER]
            given = self._torch.tensor([[*prefix, *text] for _, prefix in own])
            with self._computing():
                logits = self._bundle.models[name](
                    **self._read([source for source, _ in own]), decoder_input_ids=given
                ).logits
            after = logits[:, -len(wanted) :].log_softmax(dim=-1)  # (rows, text and end, vocabulary)
            chosen = after.gather(2, wanted.expand(len(own), -1)[..., None])[..., 0]
            scores += chosen.mean(dim=1).tolist()
        return scores

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Without gradients, on the given number of threads; they belong to the process, so they are put back."""
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(self._threads)
        try:
            with self._torch.no_grad():
                yield
        finally:
            self._torch.set_num_threads(before)

    def _read(self, sources: Sequence[str]) -> dict[str, Any]:
        rows = [self._bundle.reader.read(source) if source else self._bundle.reader.nothing for source in sources]
        longest = max(map(len, rows))
        ids = [[*row, *[self._bundle.reader.pad] * (longest - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
        return {"input_ids": self._torch.tensor(ids), "attention_mask": self._torch.tensor(mask)}
