"""What was trained is what the engine runs: scores and beams of an exported model against torch's."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cod3s.bundle import open_vocabulary
from cod3s.bundle.export import export
from cod3s.corpus import prepare
from cod3s.corpus.manifest import PrepareConfig
from cod3s.model.reader import Reader, open_reader
from cod3s.model.shape import SHAPES
from cod3s.tokens.vocabulary import Vocabulary
from cod3s.train import PRESETS, train

WHO = ("baker", "nurse", "pilot", "farmer", "judge", "plumber", "singer", "waiter", "sailor", "painter")
KIND = ("old", "young", "tall", "shy", "brave", "busy", "tired", "lazy", "proud", "quiet", "kind", "rich")
EVENTS = {"missed the last bus": "walked home", "burned the dinner": "ordered a pizza"}
CONFIG = PRESETS["tiny"].with_values(
    roles=("plain", "sentence"), epochs=12, evaluate_every=100, learning_rate=5e-3, batch_tokens=2048
)
# How far a token's log-probability may move by quantisation, in nats: the mean was 0.15 and the largest 0.84 over
# likely and unlikely sentences. A model of this width suffers more than a useful one.
INT8_MEAN, INT8_MOST = 0.3, 2.0


@dataclass(frozen=True)
class Exported:
    """A trained model, as torch has it and as the bundle has it."""

    bundle: Path
    model: Any
    words: Vocabulary
    reader: Reader

    def engine(self, compute_type: str = "default") -> Any:
        import ctranslate2

        return ctranslate2.Translator(str(self.bundle / "models" / "shared"), compute_type=compute_type)

    def read(self, text: str) -> list[str]:
        return [self.reader.tokens[number] for number in self.reader.read(text)]

    def names(self, ids: list[int]) -> list[str]:
        return [self.words.tokens[number] for number in ids]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    lines = [
        f"the {kind} {who} {event}\tthe {kind} {who} {effect}"
        for who in WHO
        for kind in KIND
        for event, effect in EVENTS.items()
    ]
    (folder / "pairs.tsv").write_text("cause\teffect\n" + "\n".join(lines))
    config = PrepareConfig(relation="effect", encoder="static", dev=20, test=0, held_out=0.2)
    prepare([str(folder / "pairs.tsv")], str(folder / "corpus"), config)
    return folder / "corpus"


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("run") / "run"
    figures = train(corpus, run, CONFIG)["shared"]
    assert figures["plain_text_loss"] < 1.5, "a model that has learned nothing would prove little"
    return run


def exported(run: Path, bundle: Path, quantization: str) -> Exported:
    from transformers import AutoModelForSeq2SeqLM

    facts = export(run, bundle, quantization=quantization)
    words = open_vocabulary(bundle / "tokens.model", facts)
    reader = open_reader(SHAPES[facts.shape], words)
    model = AutoModelForSeq2SeqLM.from_pretrained(run / "shared" / "model").eval()
    return Exported(bundle, model, words, reader)


def rows(words: Vocabulary) -> list[tuple[str, list[int]]]:
    """Sources and what the decoder is given: a tag, for one role a signature, and a sentence, likely or not."""
    signature = words.encode_signature("0110011001011100")
    found = []
    for who, kind in zip(WHO, KIND, strict=False):
        for event, effect in zip(EVENTS, reversed(EVENTS.values()), strict=True):
            source, target = f"the {kind} {who} {event}", words.encode_text(f"the {kind} {who} {effect}")
            found.append((source, [words.id("<effect:plain>"), *target]))
            found.append((source, [words.id("<effect:sentence>"), *signature, *target]))
    return found


def differences(one: Exported, engine: Any) -> np.ndarray:
    """The engine's log-probability of each token less torch's, over all rows."""
    import torch

    found = []
    for source, target in rows(one.words):
        with torch.no_grad():
            given = {"input_ids": [one.reader.read(source)], "decoder_input_ids": [target]}
            logits = one.model(**{name: torch.tensor(ids) for name, ids in given.items()}).logits[0]
        scores = logits.log_softmax(dim=-1)
        expected = [float(scores[place, token]) for place, token in enumerate([*target[1:], one.words.end])]
        (scored,) = engine.score_batch([one.read(source)], [one.names(target)])
        found += [mine - theirs for mine, theirs in zip(scored.log_probs, expected, strict=True)]
    return np.abs(found)


def test_float32_scores_are_those_of_torch(run: Path, tmp_path: Path) -> None:
    one = exported(run, tmp_path / "bundle", "float32")
    assert differences(one, one.engine("float32")).max() < 1e-3


def test_int8_scores_stay_within_the_stated_bound(run: Path, tmp_path: Path) -> None:
    one = exported(run, tmp_path / "bundle", "int8")
    found = differences(one, one.engine("int8"))
    assert found.mean() < INT8_MEAN
    assert found.max() < INT8_MOST


def test_the_best_beams_are_those_of_torch(run: Path, tmp_path: Path) -> None:
    """Free search to the end token, with both libraries' usual normalisation by length."""
    import torch

    one = exported(run, tmp_path / "bundle", "float32")
    tag = one.words.id("<effect:plain>")
    engine = one.engine("float32")
    for source, _ in rows(one.words)[::8]:
        with torch.no_grad():
            found = one.model.generate(
                input_ids=torch.tensor([one.reader.read(source)]),
                decoder_input_ids=torch.tensor([[tag]]),
                decoder_start_token_id=tag,  # else torch puts a start token before the tag
                num_beams=5,
                num_return_sequences=2,
                max_new_tokens=30,
                do_sample=False,
            )
        wanted = [one.words.decode_text(row.tolist()) for row in found]
        (result,) = engine.translate_batch(
            [one.read(source)], target_prefix=[[one.words.tokens[tag]]], beam_size=5, num_hypotheses=2
        )
        texts = [
            one.words.decode_text([one.words.tokens.index(t) for t in tokens]) for tokens in result.hypotheses
        ]
        assert texts == wanted
        assert len(set(texts)) == 2
