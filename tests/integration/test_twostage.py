"""The two stages on transformers models of a user's own: tiny T5, BART and Marian, opened from disk."""

from itertools import product
from math import exp
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

import cod3s
from cod3s.decode.config import DecodeConfig
from cod3s.decode.hf_two_stage import TwoStage, add_signature_tokens
from cod3s.errors import Cod3sError
from cod3s.signatures import from_text, hamming, pack
from cod3s.tokens.vocabulary import SignatureTokens

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = ("the", "a", "dog", "cat", "baker", "nurse", "slept", "ran", "ate", "fell", "asleep", "bread", "home")
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
SOURCE = "the baker slept"
SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
SIZES |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def make_tokenizer(begins: bool) -> Any:
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    frame = "<s> $A </s>" if begins else "$A </s>"
    tokenizer.post_processor = TemplateProcessing(single=frame, special_tokens=[("<s>", 1), ("</s>", 2)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def make_model(kind: str, vocab_size: int) -> Any:
    if kind == "t5":
        config = transformers.T5Config(
            vocab_size=vocab_size, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
        )
        return transformers.T5ForConditionalGeneration(config)
    if kind == "marian":
        config = transformers.MarianConfig(
            vocab_size=vocab_size, decoder_start_token_id=0, forced_eos_token_id=2, **SIZES, **IDS
        )
        return transformers.MarianMTModel(config)
    config = transformers.BartConfig(vocab_size=vocab_size, decoder_start_token_id=2, **SIZES, **IDS)
    model = transformers.BartForConditionalGeneration(config)
    # As in the published summarisation models: settings that would spoil a signature if they reached it.
    model.generation_config.no_repeat_ngram_size = 3
    model.generation_config.forced_bos_token_id = 1
    model.generation_config.forced_eos_token_id = 2
    return model


@pytest.fixture(scope="module", params=["t5", "bart", "marian"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A folder with a random model and tokenizer that know 6 bits, 2 a token, and a separator."""
    torch.manual_seed(3)
    tokenizer = make_tokenizer(begins=request.param == "bart")
    model = make_model(request.param, len(tokenizer))
    assert add_signature_tokens(model, tokenizer, SignatureTokens(6, 2), "<sep>") == 5
    for parameter in model.parameters():
        parameter.data *= 5  # sharper than random weights are, so that rankings have no near ties
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return request.param, folder


@pytest.fixture(scope="module")
def two(saved: tuple[str, Path]) -> TwoStage:
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(saved[1]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved[1])
    return TwoStage(model, tokenizer, SignatureTokens(6, 2), separator="<sep>")


def all_by_hand(two: TwoStage) -> dict[str, float]:
    """log p(signature | source) of every signature, one forced pass each, over signature tokens alone."""
    allowed = sorted({two.prefix("".join(bits))[-2] for bits in product("01", repeat=6)})
    inputs = two.tokenizer(SOURCE, return_tensors="pt")
    found = {}
    for bits in product("01", repeat=6):
        ids = two.prefix("".join(bits))[:-1]  # without the separator
        logits = two.model(**inputs, decoder_input_ids=torch.tensor([ids])).logits[0]
        steps = torch.log_softmax(logits[-4:-1, allowed], dim=-1)
        places = [allowed.index(number) for number in ids[-3:]]
        found["".join(bits)] = float(sum(steps[row, place] for row, place in enumerate(places)))
    return found


@torch.no_grad()
def test_a_full_beam_ranks_all_signatures_as_brute_force_does(two: TwoStage) -> None:
    wanted = all_by_hand(two)
    found = two.signatures(SOURCE, 64)
    assert dict(found) == pytest.approx(wanted, abs=1e-4)
    assert [score for _, score in found] == pytest.approx(sorted(wanted.values(), reverse=True), abs=1e-4)
    assert sum(exp(score) for _, score in found) == pytest.approx(1, abs=1e-3)


def test_the_prefix_is_what_the_tokenizer_makes_of_a_target(two: TwoStage) -> None:
    """A model that is fine-tuned on `target` sees the ids that `prefix` forces later."""
    ids = two.tokenizer(text_target=two.target("011100", "the dog ran"))["input_ids"]
    prefix = two.prefix("011100")
    assert ids[: len(prefix) - 1] == prefix[1:]
    assert two.tokenizer.decode(ids[len(prefix) - 1 :], skip_special_tokens=True) == "the dog ran"


def test_sentences_follow_their_signature_and_hold_no_signature_token(two: TwoStage) -> None:
    signatures = ["000000", "011011", "111111"]
    together = two.sentences(SOURCE, signatures, beam=3, max_tokens=6)
    alone = [two.sentences(SOURCE, [signature], beam=3, max_tokens=6)[0] for signature in signatures]
    assert [text for text, _ in together] == [text for text, _ in alone]
    assert [score for _, score in together] == pytest.approx([score for _, score in alone], abs=1e-4)
    assert all("<" not in text for text, _ in together)


@torch.no_grad()
def test_the_score_of_a_sentence_is_its_mean_log_probability(two: TwoStage) -> None:
    prefix = two.prefix("010101")
    found = two.model.generate(
        **two.tokenizer(SOURCE, return_tensors="pt"),
        decoder_input_ids=torch.tensor([prefix]),
        logits_processor=[two.processor()],
        num_beams=3,
        do_sample=False,
        max_new_tokens=6,
        forced_eos_token_id=None,
    )[0]
    logits = two.model(**two.tokenizer(SOURCE, return_tensors="pt"), decoder_input_ids=found[None, :-1]).logits[0]
    steps = torch.log_softmax(logits, dim=-1)[len(prefix) - 1 :]
    mean = steps.gather(1, found[len(prefix) :, None]).mean()
    assert two.sentences(SOURCE, ["010101"], beam=3, max_tokens=6)[0][1] == pytest.approx(float(mean), abs=1e-4)


def test_both_stages_give_answers_whose_signatures_lie_apart(two: TwoStage) -> None:
    options = DecodeConfig(min_hamming=1, signature_beam=64, beam=8, max_tokens=6)
    answers = two.generate(SOURCE, 3, relation="effect", options=options)
    packed = [pack(from_text(answer.signature)) for answer in answers.answers]
    assert len(packed) == 3
    assert all(hamming(a, b) > 1 for n, a in enumerate(packed) for b in packed[:n])
    assert answers.answers[0].signature_rank == 0
    assert (answers.source, answers.relation) == (SOURCE, "effect")


def test_more_answers_than_signatures_are_as_many_as_there_are(two: TwoStage) -> None:
    # A beam that is wider than the number of bins finds a new text for each of them.
    answers = two.generate(SOURCE, 100, options=DecodeConfig(beam=80, max_tokens=3))
    assert len({answer.signature for answer in answers.answers}) == len(answers.answers) == 64


def test_the_processor_alone_makes_plain_generation_write_a_signature_first(two: TwoStage) -> None:
    """Without forced decoder ids: lead, bits, separator, and no bit after them."""
    ids = two.model.generate(
        **two.tokenizer(SOURCE, return_tensors="pt"),
        logits_processor=[two.processor()],
        max_new_tokens=12,
        forced_eos_token_id=None,
        no_repeat_ngram_size=0,
        forced_bos_token_id=None,
    )[0].tolist()
    bits = {number for names in two.tokens.choices() for number in two.tokenizer.convert_tokens_to_ids(names)}
    length = len(two.prefix("000000"))
    assert [number in bits for number in ids[length - 4 : length - 1]] == [True] * 3
    assert not bits & set(ids[length:])


def test_a_tokenizer_without_the_tokens_is_told_how_to_get_them() -> None:
    tokenizer = make_tokenizer(begins=False)
    with pytest.raises(Cod3sError, match="is missing 2 tokens") as caught:
        TwoStage(make_model("t5", len(tokenizer)), tokenizer, SignatureTokens(16))
    assert "add_signature_tokens" in caught.value.hint


def test_tokens_with_other_names_can_be_used() -> None:
    tokenizer = make_tokenizer(begins=False)
    tokenizer.add_tokens(["[off]", "[on]"])
    two = TwoStage(
        make_model("t5", len(tokenizer)), tokenizer, SignatureTokens(4), names={"<0>": "[off]", "<1>": "[on]"}
    )
    assert two.target("0101", "the dog ran") == "[off][on][off][on] the dog ran"
    assert len(two.signatures(SOURCE, 16)) == 16


def test_a_causal_model_and_a_beam_of_one_are_refused(two: TwoStage) -> None:
    causal = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=30, n_embd=8, n_layer=1, n_head=1))
    with pytest.raises(Cod3sError, match="not an encoder-decoder"):
        TwoStage(causal, two.tokenizer, two.tokens)
    with pytest.raises(Cod3sError, match="the beam is 1"):
        two.sentences(SOURCE, ["000000"], beam=1)


def test_it_is_a_public_name() -> None:
    assert cod3s.TwoStage is TwoStage
