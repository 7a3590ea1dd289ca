"""Build the network that training starts from: new, pretrained, from a bundle or from another run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.bundle import is_bundle, model_folder, open_vocabulary, read_facts
from cod3s.encode import Vectors
from cod3s.errors import Cod3sError
from cod3s.io.disk import existing_file, read_json
from cod3s.model.causal import (
    Adaptation,
    Objective,
    Start,
    build_causal,
    load_language_model,
    map_hyperplanes,
    open_start,
    restart,
)
from cod3s.model.reader import connective_pieces
from cod3s.model.restore import restore_llama
from cod3s.model.roles import VERDICT, all_tags
from cod3s.model.shape import SHAPES
from cod3s.model.transformer import build_transformer, load_weights
from cod3s.signatures import Code, load_code
from cod3s.signatures.signer import Signer, open_encoder
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary
from cod3s.train.config import TrainConfig
from cod3s.train.run_folder import PIECES, start_folder

_SKETCH_TEXTS = 6000  # targets that show where the hyperplanes lie in a language model's embedding space


@dataclass(frozen=True)
class StartingModel:
    """What the weights of a run's models start from."""

    config: TrainConfig
    vocabulary: Vocabulary
    templates: dict[str, str]  # by relation
    code: Code
    encoder: str  # id of the encoder that signed the targets
    targets: Sequence[str]

    def build(self, member: str) -> Any:
        """A torch module for the member of the run with this name."""
        shape, config = SHAPES[self.config.shape], self.config
        if shape.causal:
            return self._build_causal(member)
        model = build_transformer(shape, self.vocabulary, seed=config.seed)
        if config.start_run:
            load_weights(model, Path(config.start_run) / member / "model")
        return model

    def _build_causal(self, member: str) -> Any:
        config = self.config
        connectives = [connective_pieces(self.vocabulary, template) for template in self.templates.values()]
        return build_causal(
            self._open_run(Path(config.start_run), member) if config.start_run else self._open_start(),
            self.vocabulary,
            Adaptation(config.lora_rank, config.dropped_layers, config.precision, config.gradient_checkpointing),
            Objective(config.verdict_weight if VERDICT in config.roles else 0.0, config.label_smoothing),
            seed=config.seed,
            tag_starts=[
                connective[-1] if role != "inverse" and connective else None
                for connective in connectives
                for role in config.roles
                if role != VERDICT
            ],
            sketch=self._sketch if config.hyperplane_start else None,
        )

    def _open_start(self) -> Start:
        """The model that the option `init` names."""
        folder = start_folder(self.config)
        if not is_bundle(folder):
            return open_start(folder, self.vocabulary)
        facts = read_facts(folder)
        names = facts.model_names
        if len(names) > 1:
            raise Cod3sError(
                f"the bundle {facts.name} has {len(names)} models, so it is not clear which one to start from",
                hint="start from a bundle with one model for all roles",
            )
        known = open_vocabulary(folder / "tokens.model", facts)
        same_signatures = self._signs_alike(known, facts.encoder, folder)
        return restart(restore_llama(model_folder(folder, names[0])), known, same_signatures=same_signatures)

    def _open_run(self, run: Path, member: str) -> Start:
        """The model of another run."""
        record = read_json(existing_file(run / "config.json"))
        config = record["config"]
        known = Vocabulary(
            run / PIECES,
            all_tags(dict.fromkeys(record["relations"], config["roles"])),
            SignatureTokens(record["bits"], config["bits_per_token"], config["positional"]),
        )
        base = load_language_model(run / member / "model")
        return restart(base, known, same_signatures=self._signs_alike(known, record["encoder"], run))

    def _signs_alike(self, known: Vocabulary, encoder: str, folder: Path) -> bool:
        """Whether the signatures of a model in `folder` mean and are written the same as those of the corpus."""
        code, _ = load_code(folder / "code")
        return (
            encoder == self.encoder
            and known.signature == self.vocabulary.signature
            and np.array_equal(code.planes, self.code.planes)
            and np.array_equal(code.thresholds, self.code.thresholds)
        )

    def _sketch(self, pieces: Vectors) -> tuple[Vectors, Vectors]:
        """The hyperplanes in the space of the pieces' embeddings, by a sample of the targets."""
        signer = Signer(open_encoder(self.encoder), self.code)
        sample = self.targets[:: max(1, len(self.targets) // _SKETCH_TEXTS)]
        embedded = np.stack([pieces[self.vocabulary.encode_text(text)].mean(axis=0) for text in sample])
        return map_hyperplanes(signer.code.planes, signer.vectors(sample), embedded)
