"""The torch weights of a bundle or a run, stepped through token by token with a cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers.modeling_outputs import BaseModelOutput

from cod3s.errors import BundleError
from cod3s.io.disk import read_json
from cod3s.model.engine import Request
from cod3s.model.reader import Reader, padded
from cod3s.model.transformer import quiet_transformers
from cod3s.tokens.vocabulary import Vocabulary

_KINDS = {"marian": "MarianMTModel", "encoder-decoder": "EncoderDecoderModel"}


@dataclass(frozen=True)
class TorchModel:
    """A model ready to step, with what turns a source into its tokens."""

    network: Any
    reader: Reader
    end: int
    positions: int  # of the decoder: prefix and text together fit into these


def open_torch_model(folder: Path, name: str, *, reader: Reader, vocabulary: Vocabulary) -> TorchModel:
    """The model `name` of a bundle that was exported with its torch weights, or of a run folder."""
    path = next((path for path in (folder / "torch" / name, folder / name / "model") if path.is_dir()), None)
    if path is None:
        raise BundleError(
            f"{folder} has no torch weights for {name!r}: this search does not run on the engine",
            hint="export it again with `cod3s bundle export RUN -o BUNDLE --with-torch`",
        )
    kind = read_json(path / "config.json").get("model_type")
    if kind not in _KINDS:
        raise BundleError(f"{path} holds a {kind!r} model, not one that cod3s trains", hint="export it again")
    network = _open_network(path, _KINDS[kind])
    if network.get_decoder().config.vocab_size != len(vocabulary):
        raise BundleError(
            f"{path} has {network.get_decoder().config.vocab_size} tokens, but the bundle has {len(vocabulary)}",
            hint="export it again",
        )
    return TorchModel(network, reader, vocabulary.end, network.get_decoder().config.max_position_embeddings)


def _open_network(path: Path, class_name: str) -> Any:
    """Weights come from safetensors alone, which hold no code; half precision is widened for the processor."""
    kind = getattr(quiet_transformers(), class_name)
    try:
        network = kind.from_pretrained(path, dtype=torch.float32, use_safetensors=True, local_files_only=True)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise BundleError(f"{path} cannot be opened: {error}", hint="export it again") from error
    return network.eval()


class Decoding:
    """Requests in progress: prefixes of equal length, `beams` hypotheses each, in order of request."""

    def __init__(self, model: TorchModel, requests: Sequence[Request], beams: int) -> None:
        self._network, self._beams = model.network, beams
        read = [model.reader.ids(request.source) for request in requests]
        ids = torch.tensor(padded(read, model.reader.pad))
        mask = torch.tensor(padded([[1] * len(row) for row in read], 0))
        encoded = self._network.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True)
        self._source, self._mask = encoded.last_hidden_state, mask
        cache, log_probs = self._forward(torch.tensor([request.prefix for request in requests]), None)
        # The prefix is read once per request; its beams differ only after it.
        cache.batch_repeat_interleave(beams)
        self._cache = cache
        self._source, self._mask, self.log_probs = (  # log_probs: (requests * beams, vocabulary)
            tensor.repeat_interleave(beams, dim=0) for tensor in (self._source, self._mask, log_probs)
        )

    def advance(self, parents: Any, tokens: Any) -> None:
        """Hypothesis i continues hypothesis `parents[i]` (of the same request) with `tokens[i]`."""
        self._cache.self_attention_cache.reorder_cache(parents)
        self._cache, self.log_probs = self._forward(tokens[:, None], self._cache)

    def keep(self, requests: Any) -> None:
        """Continue with these requests only."""
        rows = (requests[:, None] * self._beams + torch.arange(self._beams)).flatten()
        self._cache.reorder_cache(rows)
        self._source, self._mask, self.log_probs = self._source[rows], self._mask[rows], self.log_probs[rows]

    def _forward(self, tokens: Any, cache: Any) -> tuple[Any, Any]:
        output = self._network(
            encoder_outputs=BaseModelOutput(self._source),
            attention_mask=self._mask,
            decoder_input_ids=tokens,
            past_key_values=cache,
            use_cache=True,
        )
        return output.past_key_values, output.logits[:, -1].log_softmax(dim=-1)
