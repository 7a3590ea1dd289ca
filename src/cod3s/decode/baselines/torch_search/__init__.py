"""Searches that the engine does not offer, on the torch weights: diverse groups, lexical constraints."""

from cod3s.decode.baselines.torch_search.constrained import constrained_beam_search
from cod3s.decode.baselines.torch_search.diverse import diverse_beam_search
from cod3s.decode.baselines.torch_search.model import TorchModel, open_torch_model

__all__ = ["TorchModel", "constrained_beam_search", "diverse_beam_search", "open_torch_model"]
