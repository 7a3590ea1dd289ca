"""Causal models are trained: packed rows, verdicts, all families, and runs that go on."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from cod3s import load
from cod3s.bundle.export import export
from cod3s.corpus import prepare
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.critic.likelihoods import Pair, score_pairs
from cod3s.io.disk import read_json
from cod3s.model.causal import Adaptation, Objective, build_causal, open_start
from cod3s.model.convert import CAUSAL_FAMILIES
from cod3s.model.reader import open_reader
from cod3s.model.roles import ROLES, tag
from cod3s.model.shape import SHAPES
from cod3s.tokens.trimming import trim_byte_pieces
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary
from cod3s.train import PRESETS, TrainConfig, train
from cod3s.train.packing import pack_rows, packed_tensors
from cod3s.train.pairs import PairTable, Rows
from cod3s.train.tasks import Examples, role_task
from tiny_language_model import save_language_model

INVERSES = {"effect": "cause", "cause": "effect"}
EVENTS = {
    "lost the key": ("phoned a locksmith", "slept in the garden"),
    "missed the bus": ("walked home in the dark", "paid for a taxi"),
    "won a prize": ("cried with joy", "bought a piano"),
    "caught a cold": ("stayed in bed", "drank hot tea"),
}
WHO = [
    f"the {kind} {job}" for kind in ("old", "tall", "shy", "busy", "proud") for job in ("baker", "nurse", "pilot")
]


def pairs_of_both_relations() -> str:
    """Two effects and two causes of every event; causes of an event are no effects of it."""
    causes = {"lost the key": "had a hole in the bag", "missed the bus": "slept too long"}
    causes |= {"won a prize": "worked hard all year", "caught a cold": "wore no coat"}
    rows = ["source\trelation\ttarget"]
    for who in WHO:
        for event, effects in EVENTS.items():
            rows += [f"{who} {event}\teffect\t{who} {effect}" for effect in effects]
            rows += [f"{who} {event}\tcause\t{who} {causes[event]}"]
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_language_model(tmp_path_factory.mktemp("start") / "model")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "pairs.tsv").write_text(pairs_of_both_relations())
    config = PrepareConfig(filter="none", encoder="static", bits=8, held_out=0.2, test=0)
    prepare([str(folder / "pairs.tsv")], str(folder / "corpus"), config)
    return folder / "corpus"


def options(start: Path, **changes: object) -> TrainConfig:
    few = {
        "init": str(start),
        "precision": "float32",
        "batch_tokens": 512,
        "warmup_steps": 5,
        "evaluate_every": 1000,
    }
    return PRESETS["default"].with_values(**{**few, "learning_rate": 4e-3, **changes})


def weights(run: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(run / "shared" / "model" / "model.safetensors")


@pytest.mark.parametrize("family", CAUSAL_FAMILIES)
def test_packed_rows_give_the_logits_of_each_example_by_itself(family: str, start: Path, tmp_path: Path) -> None:
    """And what is learned in bfloat16 products is kept in float32, in every part of the token table."""
    from transformers import AutoConfig, AutoModelForCausalLM

    size = read_json(start / "config.json")["vocab_size"]
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    if family != "gpt_neox":
        sizes["num_key_value_heads"] = 2
    if family in ("qwen3", "gemma"):
        sizes["head_dim"] = 16
    config = AutoConfig.for_model(
        family, vocab_size=size, eos_token_id=0, bos_token_id=0, tie_word_embeddings=True, **sizes
    )
    torch.manual_seed(2)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "start")
    (tmp_path / "start" / "tokenizer.json").write_bytes((start / "tokenizer.json").read_bytes())
    trim_byte_pieces(start, ["the baker lost the key: yes or no"], tmp_path / "tokens.model", 400)
    tags = [tag(relation, role) for relation in INVERSES for role in ROLES]
    words = Vocabulary(tmp_path / "tokens.model", tags, SignatureTokens(8, 4, positional=True))
    model = build_causal(
        open_start(tmp_path / "start", words),
        words,
        Adaptation(lora_rank=0, precision="float32"),
        Objective(verdict_weight=0.5),
        seed=1,
        tag_starts=[None] * len(tags),
    )
    rows = Rows(
        [f"the baker lost {n // 3} keys" for n in range(12)],
        [f"she found {n}" for n in range(12)],
        [f"{n:08b}" for n in range(12)],
        [f"{n:08b}" for n in range(12)],
        [""] * 12,
    )
    reader = open_reader(SHAPES["causal"], words, "{source}, so {target}")
    tables = {"effect": PairTable(rows, words, reader.read, {}, 128)}
    tasks = [
        role_task("effect", role, tables, {}, judged=role == "plain") for role in ("plain", "sentence", "inverse")
    ]
    examples = Examples(tasks, words, [])
    everything = np.arange(len(examples))
    packed = packed_tensors(
        examples, pack_rows(examples, everything, 256, np.random.default_rng(1)), 256, words.pad
    )
    single = packed_tensors(examples, [[[number]] for number in everything], 256, words.pad)
    assert len(packed["input_ids"]) < len(single["input_ids"]) / 3

    def scored(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        inputs = {name: tensor for name, tensor in batch.items() if name not in ("labels", "plausible")}
        with torch.no_grad():
            log_probs = model(**inputs).logits.log_softmax(-1)
        taught = batch["labels"] >= 0
        return log_probs[taught][torch.arange(int(taught.sum())), batch["labels"][taught]].sort().values

    torch.testing.assert_close(scored(packed), scored(single), atol=1e-4, rtol=0)
    model(**packed).loss.backward()
    still = [name for name, weight in model.named_parameters() if weight.requires_grad and weight.grad is None]
    assert not still, "all weights learn"
    assert all(weight.dtype == torch.float32 for weight in model.parameters())


def test_a_model_learns_to_write_and_to_judge(start: Path, corpus: Path, tmp_path: Path) -> None:
    """Who is new in dev; what happened is not. Guessing gives an area of .5 under the curve of verdicts."""
    draw = random.Random(1)
    rows = ["source\trelation\ttarget\tplausible"]
    for who in WHO[:6]:
        for event, effects in EVENTS.items():
            other = draw.choice([name for name in EVENTS if name != event])
            rows += [
                f"{who} {event}\teffect\t{who} {effects[0]}\tyes",
                f"{who} {event}\teffect\t{who} {EVENTS[other][0]}\tno",
            ]
    (tmp_path / "verdicts.tsv").write_text("\n".join(rows) + "\n")
    config = options(start, shares=(1.0, 1.0, 0.2, 1.0), verdicts=str(tmp_path / "verdicts.tsv"), epochs=25)
    figures = train(corpus, tmp_path / "run", config)["shared"]
    assert figures["verdict_auc"] > 0.8
    assert figures["sentence_nats"] < figures["plain_nats"] < 6
    assert figures["sentence_bit_accuracy"] > figures["majority_bit_accuracy"]
    facts = export(tmp_path / "run", tmp_path / "bundle", quantization="float32")
    assert facts.judges
    assert {role for roles in facts.models.values() for role in roles} == {"plain", "sentence", "inverse"}
    assert facts.training["config"]["verdicts"] == "verdicts.tsv", "a bundle tells no one's folders"
    model = load(tmp_path / "bundle", threads=1)
    source = f"{WHO[0]} won a prize"
    targets = (f"{WHO[0]} bought a piano", f"{WHO[0]} drank hot tea")
    right, wrong = score_pairs(model.models, [Pair("effect", source, target) for target in targets], ["verdict"])
    assert right.verdict is not None
    assert wrong.verdict is not None
    assert right.verdict > wrong.verdict + 1


def test_an_interrupted_run_ends_with_the_weights_of_an_uninterrupted_one(
    start: Path, corpus: Path, tmp_path: Path
) -> None:
    """With a stable schedule, bfloat16 products and states that are computed again."""
    config = options(start, max_steps=6, evaluate_every=2, precision="bfloat16", gradient_checkpointing=True)
    train(corpus, tmp_path / "whole", config)
    ticks = iter(range(10_000))
    train(corpus, tmp_path / "broken", config, seconds=3, clock=lambda: float(next(ticks)))
    train(corpus, tmp_path / "broken", config, resume=True)
    whole, broken = weights(tmp_path / "whole"), weights(tmp_path / "broken")
    for name, tensor in whole.items():
        np.testing.assert_allclose(tensor, broken[name], atol=1e-6)


def test_a_finished_run_with_a_stable_rate_goes_on_as_if_it_had_been_longer(
    start: Path, corpus: Path, tmp_path: Path
) -> None:
    short, long = (options(start, max_steps=steps, decay=0.5, epochs=9, evaluate_every=3) for steps in (6, 12))
    train(corpus, tmp_path / "run", short)
    train(corpus, tmp_path / "run", long, resume=True)
    train(corpus, tmp_path / "whole", long)
    whole, continued = weights(tmp_path / "whole"), weights(tmp_path / "run")
    for name, tensor in whole.items():
        np.testing.assert_allclose(tensor, continued[name], atol=1e-6)


def test_a_causal_run_can_start_from_another(start: Path, corpus: Path, tmp_path: Path) -> None:
    before = train(corpus, tmp_path / "first", options(start, epochs=4))["shared"]
    config = options(start, start_run=str(tmp_path / "first"), max_steps=1, learning_rate=1e-9)
    after = train(corpus, tmp_path / "second", config)["shared"]
    for name in ("plain_nats", "sentence_nats", "sentence_signature_nats", "verdict_auc"):
        assert after[name] == pytest.approx(before[name], abs=1e-2), name
