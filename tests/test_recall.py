"""Known answers are recalled for similar sources, judged like the others, and nothing else changes."""

import lzma
import shutil
import zlib
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from cod3s.bundle import read_facts, write_facts
from cod3s.critic.examples import VERDICTS, LabelledPair
from cod3s.critic.fitting import GLANCE, fit_critic
from cod3s.decode.choice import Taken, choose_known
from cod3s.decode.decode_config import DecodeConfig
from cod3s.decode.generator import Generator, load
from cod3s.decode.known_answers import KnownAnswer, KnownAnswers, Recalled, are_opposites, load_known, save_known
from cod3s.decode.pair_likelihoods import Pair
from cod3s.decode.plausibility import GLANCED, Critic, load_critic, save_critic
from cod3s.decode.retelling import hero_of, names_nobody, retell, retold
from cod3s.decode.sentences import Candidate
from cod3s.encode import Encoder
from cod3s.errors import BundleError
from cod3s.model.engine import Request
from cod3s.records import AnswerMade, AnswerSet, SignaturesChosen, StageStarted
from cod3s.signatures import from_text, random_code
from cod3s.signatures.signer import Signer
from conftest import Run
from tiny_bundle import SOURCES, TinyBundle

QUICK = DecodeConfig(k=3, signature_beam=20, beam=2, max_tokens=16, drop=False)
KNOWN = {
    "The boat sank in the harbour.": {"effect": ["the fishermen lost their nets", "divers went down"]},
    "She baked bread for the neighbours.": {"effect": ["he thanked her", "her kitchen smelled good"]},
    "The boat did not sink in the harbour.": {"effect": ["everybody cheered"], "cause": ["the hull was new"]},
}


@pytest.fixture(scope="module")
def signer(static: Encoder) -> Signer:
    return Signer(static, random_code(16, static.dim))


@pytest.fixture
def known(signer: Signer, tmp_path: Path) -> KnownAnswers:
    save_known(tmp_path / "known", KNOWN, signer)
    return load_known(tmp_path / "known")


def recalled(known: KnownAnswers, signer: Signer, source: str, relation: str = "effect") -> list[str]:
    return [answer.text for answer in known.recall(source, relation, signer).answers]


def test_answers_to_the_most_similar_source_come_first(known: KnownAnswers, signer: Signer) -> None:
    assert len(known) == 3
    assert recalled(known, signer, "The boat sank in the harbour.")[:2] == sorted(
        KNOWN["The boat sank in the harbour."]["effect"]
    )
    (first, *_) = known.recall("the boat sank", "effect", signer).answers
    assert first.source == "The boat sank in the harbour."
    assert 0.5 <= first.similarity <= 1


def test_of_similar_sources_those_with_the_same_words_come_first(signer: Signer, tmp_path: Path) -> None:
    answers = {"The ship sank.": {"effect": ["a"]}, "The boat sank in the deep harbour.": {"effect": ["b"]}}
    save_known(tmp_path / "known", answers, signer)
    first, second = load_known(tmp_path / "known").recall("the boat sank in the harbour", "effect", signer).answers
    assert (first.text, first.overlap) == ("b", 3 / 4)
    assert (second.text, second.overlap) == ("a", 1 / 4)


def test_words_in_another_order_count_less(signer: Signer, tmp_path: Path) -> None:
    answers = {"They shook hands.": {"effect": ["a"]}, "His hands shook badly.": {"effect": ["b"]}}
    save_known(tmp_path / "known", answers, signer)
    found = load_known(tmp_path / "known").recall("her hands shook", "effect", signer).answers
    assert {answer.text: answer.overlap for answer in found} == {"a": 1 / 2, "b": 2 / 3}


def test_negations_are_no_words_in_common(signer: Signer, tmp_path: Path) -> None:
    save_known(tmp_path / "known", {"He did not find his hat.": {"effect": ["a"]}}, signer)
    (found,) = load_known(tmp_path / "known").recall("He could not find his keys.", "effect", signer).answers
    assert found.overlap == 1 / 5, "found it, of did, find, hat, could and keys"


def test_nothing_is_recalled_for_a_source_like_none_of_them(known: KnownAnswers, signer: Signer) -> None:
    assert recalled(known, signer, "Parliament debated quantum physics.") == []
    assert recalled(known, signer, "The boat sank in the harbour.", "cause") == []


def test_negation_must_agree(known: KnownAnswers, signer: Signer) -> None:
    assert "everybody cheered" not in recalled(known, signer, "The boat sank in the harbour.")
    assert recalled(known, signer, "The boat didn't sink in the harbour.") == ["everybody cheered"]
    assert recalled(known, signer, "The boat stopped sinking in the harbour.") == ["everybody cheered"]
    assert "everybody cheered" not in recalled(known, signer, "The boat sank in the harbour without a sound.")


def test_answers_to_other_sources_support_an_answer(signer: Signer) -> None:
    """A known answer to the same source is no support, so answers to one source cannot praise each other."""
    told = [("it sank", "the crew swam ashore"), ("it sank", "the crew swam"), ("it burned", "the crew swam away")]
    answers = [KnownAnswer(text, source, 0.8, 0.5, 0.4, 0.4) for source, text in told]
    vectors = signer.vectors([text for _, text in told])
    recalled = Recalled(answers, vectors)
    cosines = vectors @ vectors.T
    assert recalled.support("the crew swam ashore", vectors[0]) == pytest.approx(cosines[0, 2] / 2)
    assert recalled.support("the crew swam away", vectors[2]) == pytest.approx((cosines[2, 0] + cosines[2, 1]) / 2)
    assert recalled.support("written", vectors[0]) == pytest.approx((1 + cosines[0, 1:].max()) / 2)
    assert Recalled([], vectors[:0]).support("written", vectors[0]) == 0
    assert recalled.find("the crew swam") == answers[1]
    assert recalled.find("written") is None


PEOPLE = [
    ("She baked bread for the neighbours.", ["her kitchen smelled good"], "about her alone"),
    ("My brother baked bread for the neighbours.", ["his kitchen smelled good"], "told about him"),
    ("I baked bread for the neighbours.", ["my kitchen smelled good"], "told about me"),
    (
        "Kim baked bread for the neighbours.",
        ["he thanked her", "her kitchen smelled good"],
        "a name does not tell",
    ),
]


@pytest.mark.parametrize(("source", "wanted", "why"), PEOPLE, ids=[why for *_, why in PEOPLE])
def test_answers_are_told_about_the_people_of_the_source(
    known: KnownAnswers, signer: Signer, source: str, wanted: list[str], why: str
) -> None:
    assert recalled(known, signer, source) == wanted, why


HEROES = [
    ("She missed her flight.", "she"),
    ("My sister missed her flight.", "she"),
    ("My phone is gone", "I"),
    ("Our team lost.", "we"),
    ("they stole my bike", "I"),
    ("They lost their keys.", "they"),
    ("Tom lost his keys.", "he"),
    ("my brother and i fought", "I"),
    ("My parents sold their house.", "they"),
    ("The bakery closed.", None),
]


@pytest.mark.parametrize(("source", "hero"), HEROES)
def test_who_a_source_is_about(source: str, hero: str | None) -> None:
    assert hero_of(source) == hero


def test_my_boss_is_not_me() -> None:
    assert [*retell(["he found a better job"], "He quit.", "My boss quit.")] == ["he found a better job"]
    assert [*retell(["he found a better job"], "He quit.", "I quit.")] == ["I found a better job"]
    assert [*retell(["he bought a new one"], "He broke his phone.", "My phone broke.")] == ["I bought a new one"]
    assert [*retell(["he was sad"], "He had a birthday.", "everyone forgot my birthday")] == ["I was sad"]


ELSEWHERE = [
    ("My cousin won the lottery.", ["the whole street heard of it"], "what we did is not what my cousin did"),
    ("A pub on our street won the lottery.", ["the whole street heard of it"], "nor what a pub did"),
    ("We won a lottery.", ["we shared the prize", "the whole street heard of it"], "we are we"),
    (
        "My sister won the lottery.",
        ["she shared the prize", "the whole street heard of it"],
        "it can be told of her",
    ),
    ("we've won the lottery", ["we shared the prize", "the whole street heard of it"], "nor are we others"),
    ("My ticket won.", ["we shared the prize", "the whole street heard of it"], "my ticket is mine"),
]


@pytest.mark.parametrize(("source", "wanted", "why"), ELSEWHERE, ids=[why for *_, why in ELSEWHERE])
def test_what_we_did_is_not_told_about_others(source: str, wanted: list[str], why: str) -> None:
    answers = ["we shared the prize", "the whole street heard of it"]
    assert [*retell(answers, "We won the lottery.", source)] == wanted, why


NOBODY = [
    ("the cake didn't rise", True, "a thing"),
    ("The oven was smoking.", True, "a thing"),
    ("The mayor resigned.", False, "a person"),
    ("The violinist broke a string.", False, "people end in -ist"),
    ("Kim baked bread.", False, "perhaps a name"),
    ("it snowed in Johannesburg", False, "perhaps a name"),
    ("My cat is sick.", False, "it is mine"),
    ("\U0001f170", True, "a picture of a capital letter"),
]


@pytest.mark.parametrize(("source", "nobody", "why"), NOBODY, ids=[source for source, *_ in NOBODY])
def test_whether_a_source_names_nobody(source: str, nobody: bool, why: str) -> None:
    assert names_nobody(source) is nobody, why


def test_who_tells_of_a_thing_acts_in_its_story() -> None:
    answers = ["she forgot the baking powder", "her boy slammed the oven door", "the yeast was old"]
    mine = ["I forgot the baking powder", "my boy slammed the oven door", "the yeast was old"]
    assert [*retell(answers, "The cake did not rise.", "the cake didn't rise")] == mine
    assert [*retell(answers, "Her cake did not rise.", "the cake didn't rise")] == mine
    assert [*retell(["he moved away"], "The mayor resigned.", "The mayor resigned.")] == ["he moved away"]


def test_what_happened_to_me_is_not_told_about_others() -> None:
    answers = ["it hit me on the cheek", "my teacher had a spare one", "it snapped"]
    assert [*retell(answers, "My string broke.", "The violinist broke a string.")] == ["it snapped"]


SAME_PEOPLE = [
    (
        "A branch scratched my face.",
        "A twig scratched my face.",
        "I wiped off the blood",
        "what is mine is mine in both",
    ),
    ("my boss ignores my emails", "My boss ignored my email.", "he gets too many of them", "the boss is in both"),
    ("Our cat came back.", "our cat has come back", "she was hungry", "and so is the cat"),
    ("I asked him why.", "I asked him how.", "he did not know", "he is in both"),
    ("My sister's dress did not fit.", "My sister's gown didn't fit", "she was sad", "so is my sister"),
    ("We surprised dad.", "We surprised our dad again.", "he cried", "so is dad"),
]


@pytest.mark.parametrize(("told", "asked", "answer", "why"), SAME_PEOPLE, ids=[why for *_, why in SAME_PEOPLE])
def test_answers_about_people_of_both_sources_are_kept(told: str, asked: str, answer: str, why: str) -> None:
    assert [*retell([answer], told, asked)] == [answer], why


def test_what_takes_several_people_is_not_told_about_one() -> None:
    answers = ["they were old colleagues", "they had met at school", "they hugged each other", "they were anxious"]
    assert [*retell(answers, "They shook hands.", "She shook hands with him.")] == ["she was anxious"]
    assert [*retell(answers, "They shook hands.", "I shook hands with him.")] == ["I was anxious"]
    assert [*retell(answers, "They shook hands.", "They have shaken hands.")] == answers


def test_what_others_do_to_me_stays_with_me() -> None:
    answers = ["I ate cake alone"]
    assert [*retell(answers, "everyone forgot my birthday", "my sister forgot my birthday")] == answers
    assert [*retell(answers, "I celebrated alone.", "My sister celebrated alone.")] == ["she ate cake alone"]


def test_several_neighbours_are_they() -> None:
    answers = ["he worked nights"]
    assert [*retell(answers, "He never said hello.", "our neighbours never say hello")] == ["they worked nights"]
    assert [*retell(answers, "He never said hello.", "My boss never says hello.")] == answers


def test_effects_of_what_somebody_does_to_me_are_about_me() -> None:
    asked, effects = "he broke my phone", ["he bought a new one", "he apologized"]
    assert [*retell(effects[:1], "He broke his phone.", asked, "effect")] == ["I bought a new one"]
    assert [*retell(["I had no phone"], "the phone broke", asked, "effect")] == ["I had no phone"]
    assert [*retell(["they bought new ones"], "They broke their phones.", "he broke our phones", "effect")] == [
        "we bought new ones"
    ]
    assert [*retell(effects, "He broke the phone.", asked, "effect")] == effects


def test_causes_of_what_somebody_does_to_me_are_about_who_did_it() -> None:
    causes = ["I was angry", "I dropped it"]
    assert [*retell(causes, "I broke my phone.", "he broke my phone", "cause")] == [
        "he was angry",
        "he dropped it",
    ]
    assert [*retell(["he was angry"], "He broke his phone.", "he broke my phone", "cause")] == ["he was angry"]
    assert [*retell(["I had lent it out"], "my phone got broken", "he broke my phone", "cause")] == [
        "I had lent it out"
    ]


def test_what_my_friend_did_is_told_of_my_sister_and_what_i_did_stays_with_me() -> None:
    answers = ["I need a new tennis partner", "he misses his family"]
    told = [*retell(answers, "My friend moved to Australia.", "My sister moved to Australia.", "effect")]
    assert told == ["I need a new tennis partner", "she misses her family"]


def test_what_we_did_is_not_what_he_did_alone() -> None:
    assert [*retell(["neither of us could win"], "My opponent offered me a draw.", "She offered a draw.")] == []
    assert [*retell(["we went home"], "We missed the film.", "She missed the film.")] == ["she went home"]


def test_need_is_not_a_past_tense() -> None:
    assert retold("I need visas", "I", "she") is None
    assert retold("I agreed at once", "I", "she") == "she agreed at once"


def test_what_i_do_to_others_is_not_done_to_me() -> None:
    told, asked = "I told everyone my best friend's secret", "My best friend told my secret to everyone."
    assert [*retell(["she stopped talking to me"], told, asked, "effect")] == []
    assert [*retell(["I was drunk"], told, "My sister told my secret to everyone.", "cause")] == ["she was drunk"]


def test_answers_about_people_of_one_source_are_left_out() -> None:
    assert [*retell(["he gets too many of them"], "my boss ignores my emails", "I ignored the emails")] == []
    assert [*retell(["I wiped off the blood"], "I scratched my face.", "A twig scratched my cousin.")] == []


def test_several_people_do_not_share_a_wife() -> None:
    answers = ["his wife had a headache", "he sold it again"]
    assert [*retell(answers, "He bought a drum kit.", "They bought a drum kit.")] == ["they sold it again"]
    assert [*retell(answers, "He bought a drum kit.", "I bought a drum kit.")] == [
        "my wife had a headache",
        "I sold it again",
    ]


OPPOSITES = [
    ("The bank raised its rates.", "The bank cut its rates.", True, "raised and cut"),
    ("It snowed all night.", "The snow melted.", True, "one comes, the other goes"),
    ("The bank raised its rates.", "The bank raised its fees.", False, "the same"),
    ("He won and lost.", "He lost.", False, "both have it"),
]


@pytest.mark.parametrize(("text", "other", "wanted", "why"), OPPOSITES, ids=[why for *_, why in OPPOSITES])
def test_opposites(text: str, other: str, wanted: bool, why: str) -> None:
    assert are_opposites(text, other) is wanted, why
    assert are_opposites(other, text) is wanted, why


def test_answers_to_the_opposite_are_not_recalled(signer: Signer, tmp_path: Path) -> None:
    answers = {"The bank raised rates.": {"effect": ["a"]}, "The bank cut rates.": {"effect": ["b"]}}
    save_known(tmp_path / "known", answers, signer)
    assert recalled(load_known(tmp_path / "known"), signer, "the bank raised rates again") == ["a"]


RETOLD = [
    ("we slept on a bench", "we", "she", "she slept on a bench"),
    ("our friends waited in vain", "we", "he", "his friends waited in vain"),
    ("I was given a reward", "I", "they", "they were given a reward"),
    ("the owner thanked me", "I", "he", "the owner thanked him"),
    ("her boss sent her home", "she", "I", "my boss sent me home"),
    ("he told his mother", "he", "she", "she told her mother"),
    ("it made her happy", "she", "he", "it made him happy"),
    ("a statue of her was put up", "she", "I", "a statue of me was put up"),
    ("they never found their dog", "they", "I", "I never found my dog"),
    ("I don't like it", "I", "she", "she doesn't like it"),
    ("she'd lost it", "she", "we", "we'd lost it"),
    ("we have to walk", "we", "he", "he has to walk"),
    ("the shop was closed", "I", "she", "the shop was closed"),
    ("my father was cross with us", "we", "she", "her father was cross with her"),
    ("the airline gave us vouchers", None, "he", "the airline gave him vouchers"),
    ("we had to walk", "we", "I", "we had to walk"),
    ("I make it at home", "I", "he", None),
    ("I've lost it", "I", "he", None),
    ("he told me about it", "he", "I", None),
    ("we gave him ours", "we", "he", None),
    ("and I, too", "I", "he", None),
]


@pytest.mark.parametrize(("text", "teller", "hero", "wanted"), RETOLD)
def test_retold(text: str, teller: str | None, hero: str, wanted: str | None) -> None:
    assert retold(text, teller, hero) == wanted


def test_estimated_cosines_are_near_the_true_ones(signer: Signer) -> None:
    random = np.random.default_rng(3)
    vectors = random.normal(size=(200, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    known = KnownAnswers([""] * 200, [], np.packbits(vectors > 0, axis=-1))
    query = vectors[0] + 0.5 * vectors[1]
    query /= np.linalg.norm(query)
    assert known._similarities(query) == pytest.approx(vectors @ query, abs=0.2)
    assert np.abs(known._similarities(query) - vectors @ query).mean() < 0.05


def test_of_sources_that_are_alike_the_one_with_the_most_answers_is_kept(signer: Signer, tmp_path: Path) -> None:
    answers = {
        "The boat sank.": {"effect": ["a"]},
        "the boat sank": {"effect": ["b", "c"]},
        "She baked bread.": {"cause": ["d"]},
        "I baked bread.": {"cause": ["e"]},
    }
    assert save_known(tmp_path / "all", answers, signer) == 4
    assert save_known(tmp_path / "known", answers, signer, most_alike=0.95) == 2
    known = load_known(tmp_path / "known")
    assert recalled(known, signer, "The boat sank.") == ["b", "c"]
    assert recalled(known, signer, "I baked bread.", "cause") == ["d"], "people do not count"


def huge_dictionary() -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
    packed = bytearray(lzma.compress(b"{}", filters=filters))
    position = packed.index(b"\x21\x01") + 2  # the size of the dictionary, after the id of the filter
    packed[position] = 39  # 3 GiB
    block = packed[12 : 12 + 4 * (packed[12] + 1) - 4]
    packed[12 + len(block) : 16 + len(block)] = zlib.crc32(block).to_bytes(4, "little")
    return bytes(packed)


def lying_array(version: int, length: bytes, shape: str) -> bytes:
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY" + bytes((version, 0)) + (length or len(header).to_bytes(2, "little")) + header


DAMAGES = [
    ("texts.xz", b"no archive", "the answers are not compressed"),
    ("texts.xz", huge_dictionary(), "unpacking the answers would take gigabytes"),
    ("signs.npy", lying_array(1, b"", "(3, 1000000000000)"), "the signs claim to be a terabyte"),
    ("signs.npy", lying_array(2, b"\xff\xff\xff\xff", "(3, 32)"), "the header claims to be 4 gigabytes long"),
    ("signs.npy", lying_array(1, b"", "()"), "the signs have no rows"),
    ("signs.npy", b"no array", "the signs are no array"),
    ("relations.json", b"no JSON", "the relations are not JSON"),
    ("relations.json", b"3", "the relations are not a list"),
    ("relations.json", None, "the relations are missing"),
    ("texts.xz", None, "the answers are missing"),
    ("signs.npy", None, "the signs are missing"),
]


@pytest.mark.parametrize(("name", "content", "why"), DAMAGES, ids=[why for *_, why in DAMAGES])
def test_a_damaged_collection_is_an_error(
    signer: Signer, tmp_path: Path, name: str, content: bytes | None, why: str
) -> None:
    save_known(tmp_path / "known", KNOWN, signer)
    if content is None:
        (tmp_path / "known" / name).unlink()
    else:
        (tmp_path / "known" / name).write_bytes(content)
    with pytest.raises(BundleError, match="known answers") as caught:
        load_known(tmp_path / "known")
    assert "cod3s remember" in caught.value.hint, why


def test_signs_of_another_encoder_are_an_error(signer: Signer, tmp_path: Path) -> None:
    save_known(tmp_path / "known", KNOWN, signer)
    signs = tmp_path / "known" / "signs.npy"
    np.save(signs, np.load(signs)[:, :-1], allow_pickle=False)
    with pytest.raises(BundleError, match="another encoder"):
        recalled(load_known(tmp_path / "known"), signer, "The boat sank.")


def test_too_few_signs_are_an_error(signer: Signer, tmp_path: Path) -> None:
    save_known(tmp_path / "known", KNOWN, signer)
    np.save(tmp_path / "known" / "signs.npy", np.zeros((2, 8), np.uint8))
    with pytest.raises(BundleError, match="do not fit together"):
        load_known(tmp_path / "known")


# In a bundle

ANSWERS = "source\trelation\ttarget\n" + "".join(
    f"{source}\teffect\t{target}\n"
    for source in SOURCES
    for target in ("a locksmith came to the house", "the neighbours looked on")
)


@pytest.fixture(scope="module")
def bundle(tiny_bundle: TinyBundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny bundle with a critic that likes known answers best, and answers to recall."""
    folder = tmp_path_factory.mktemp("recall") / "bundle"
    shutil.copytree(tiny_bundle.exact, folder)
    generator = load(folder)
    answers = {
        source: {"effect": ["a locksmith came to the house", "the neighbours looked on"]} for source in SOURCES
    }
    save_known(folder / "known", answers, generator.signer)
    weights = {"pmi_per_token": 0.5, "is_known": 1.0, "known": 3.0}
    save_critic(folder / "critic", Critic(weights, 0.0, 0.0, generator.encoder.id))
    write_facts(folder, replace(read_facts(folder), critic="critic", known="known"))
    return folder


@pytest.fixture(scope="module")
def generator(bundle: Path) -> Generator:
    return load(bundle)


def test_known_answers_are_chosen_where_the_critic_likes_them(generator: Generator) -> None:
    answers = generator.generate(SOURCES[0], "effect", options=QUICK)
    known = [answer for answer in answers if answer.known_for]
    assert known
    assert {answer.text for answer in known} <= {"a locksmith came to the house", "the neighbours looked on"}
    for answer in known:
        assert answer.known_for in SOURCES
        assert answer.forward is None
        assert answer.plausibility is not None
        assert answer.realised
    assert all(answer.forward is not None for answer in answers if not answer.known_for)


def test_streamed_or_in_a_batch_the_same_answers_are_recalled(generator: Generator) -> None:
    chosen = generator.generate(SOURCES[0], "effect", options=QUICK)
    *_, streamed = generator.stream(SOURCES[0], "effect", options=QUICK)
    assert isinstance(streamed, AnswerSet)
    assert streamed.texts == chosen.texts
    together = generator.generate([SOURCES[1], SOURCES[0]], "effect", options=QUICK)
    assert together[1].texts == chosen.texts


def test_sure_answers_come_first_and_lie_in_their_own_bins(generator: Generator) -> None:
    answers = generator.generate(SOURCES[0], "effect", options=QUICK.with_values(sure=0.9, likely=0.9))
    first, second, third = answers
    assert [bool(answer.known_for) for answer in answers] == [True, True, False]
    for answer in (first, second):
        assert (answer.signature, answer.hamming, answer.signature_rank) == (answer.realised, 0, None)
        assert (answer.plausibility or 0) >= 0.9
    assert third.signature_rank is not None
    for a, b in combinations([from_text(answer.signature) for answer in answers], 2):
        assert int((a != b).sum()) > QUICK.min_hamming


def test_if_enough_answers_are_sure_nothing_is_searched_or_written(
    generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[Request] = []
    engine = type(generator.models.sentence("effect").engine)
    monkeypatch.setattr(engine, "search", lambda _, requests, **options: searched.extend(requests) or [])
    answers = generator.generate(SOURCES[0], "effect", 2, options=QUICK)
    assert sorted(answers.texts) == ["a locksmith came to the house", "the neighbours looked on"]
    assert not searched
    assert not answers.remarks


def test_with_sure_and_likely_1_all_known_answers_compete(generator: Generator) -> None:
    answers = generator.generate(SOURCES[0], "effect", options=QUICK.with_values(sure=1.0, likely=1.0))
    assert all(answer.signature_rank is not None for answer in answers)
    likely = generator.generate(SOURCES[0], "effect", options=QUICK.with_values(sure=1.0))
    assert [answer.signature_rank is None for answer in likely] == [True, True, False]


def test_written_answers_have_a_floor_of_their_own(bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "strict"
    shutil.copytree(bundle, folder)
    save_critic(folder / "critic", replace(load_critic(folder / "critic"), written_floor=1.0))
    write_facts(folder, read_facts(folder))
    strict = load(folder)
    everything = strict.generate(SOURCES[0], "effect", 5, options=QUICK.with_values(drop=False))
    answers = strict.generate(SOURCES[0], "effect", 5, options=QUICK.with_values(drop=True))
    assert sum(bool(answer.known_for) for answer in answers) == 2
    assert len(answers) == 3 < len(everything), "one that was written is shown, because there are so few"
    assert any("implausible" in remark for remark in answers.remarks)


def test_sure_answers_are_streamed_before_bins_are_searched(generator: Generator) -> None:
    events = list(generator.stream(SOURCES[0], "effect", options=QUICK, stages=True))
    kinds = [str(event) if isinstance(event, StageStarted) else type(event).__name__ for event in events]
    assert kinds[:5] == ["recalling answers", "SignaturesChosen", "AnswerMade", "AnswerMade", "choosing bins"]
    assert [event.place for event in events if isinstance(event, AnswerMade)] == [0, 1, 2]
    expected = {
        bin.signature for event in events if isinstance(event, SignaturesChosen) for bin in event.signatures
    }
    assert {answer.signature for answer in generator.generate(SOURCES[0], "effect", options=QUICK)} == expected


@pytest.fixture(scope="module")
def glancing(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle with a critic that likes known answers at a glance."""
    folder = tmp_path_factory.mktemp("glance") / "bundle"
    shutil.copytree(bundle, folder)
    glance = {"known": 6.0, "known_overlap": 1.0, "support": 1.0, "relevance": 0.0, "known_relevance": 0.0}
    save_critic(folder / "critic", replace(load_critic(folder / "critic"), glance=glance, glance_bias=-3.0))
    write_facts(folder, read_facts(folder))
    return folder


def test_what_is_sure_at_a_glance_needs_no_language_model(glancing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = load(glancing)
    monkeypatch.setattr(generator.models, "_open_engine", lambda name: pytest.fail(f"{name} was opened"))
    answers = generator.generate(SOURCES[0], "effect", 2, options=QUICK)
    assert sorted(answers.texts) == ["a locksmith came to the house", "the neighbours looked on"]
    assert all((answer.plausibility or 0) > 0.9 for answer in answers)
    *_, streamed = generator.stream(SOURCES[0], "effect", 2, options=QUICK)
    assert isinstance(streamed, AnswerSet)
    assert streamed.texts == answers.texts


def test_answers_after_a_glance_lie_apart_from_those_before(glancing: Path) -> None:
    answers = load(glancing).generate(SOURCES[0], "effect", options=QUICK)
    assert [bool(answer.known_for) for answer in answers] == [True, True, False]
    for a, b in combinations([from_text(answer.signature) for answer in answers], 2):
        assert int((a != b).sum()) > QUICK.min_hamming


def test_sure_answers_lie_apart_from_bins_that_have_answered(signer: Signer) -> None:
    texts = ["the dog barked loudly", "she sold her house", "the soup burned"]
    candidates = [
        Candidate(text, None, -0.1 * number, realised=f"{15 << 4 * number:016b}", vector=vector)
        for number, (text, vector) in enumerate(zip(texts, signer.vectors(texts), strict=True))
    ]
    taken = Taken()
    taken.add(candidates[0])
    config = QUICK.with_values(k=2)
    chosen = choose_known(config, "a thief came", candidates[1:], taken, [candidates[1].realised])
    assert [answer.text for answer in chosen] == [texts[2]], "the bin is taken"
    again = replace(candidates[0], realised="1" * 16)
    assert choose_known(config, "a thief came", [again], taken, ["0" * 16]) == [], "the meaning is taken"


def test_verdicts_on_known_answers_teach_a_critic_to_glance(bundle: Path) -> None:
    generator = load(bundle)
    texts = {"a locksmith came to the house": True, "the neighbours looked on": False, "he bought a boat": False}
    examples = [
        LabelledPair(Pair("effect", source, text), plausible, VERDICTS, source)
        for source in (f"{source.rstrip('.')} today." for source in SOURCES)
        for text, plausible in texts.items()
    ]
    fit = fit_critic(examples, generator.models, generator.signer, features=("is_known", *GLANCED))
    assert {*fit.critic.glance} == {*GLANCED}
    (glanced,) = [row for row in fit.measured if row.data == GLANCE and not row.relation]
    assert glanced.auc >= 0, "only the two known answers to each source count"
    without = fit_critic(examples, generator.models, generator.signer, features=("words",))
    assert not without.critic.glance


def test_a_critic_that_glances_at_other_features_is_an_error(glancing: Path, tmp_path: Path) -> None:
    critic = load_critic(glancing / "critic")
    save_critic(tmp_path, replace(critic, glance={"charm": 1.0}))
    with pytest.raises(BundleError, match="does not say how to glance"):
        load_critic(tmp_path)


def test_several_answers_per_bin_are_never_sure(generator: Generator) -> None:
    answers = generator.generate(SOURCES[0], "effect", 2, options=QUICK.with_values(per_bin=2))
    assert len(answers) > 2


def test_of_answers_that_say_the_same_one_is_sure(signer: Signer) -> None:
    texts = ["the dog barked loudly", "the dog barked very loudly", "she sold her house"]
    vectors = signer.vectors(texts)
    candidates = [
        Candidate(text, None, -0.1 * number, realised=f"{15 << 4 * number:016b}", vector=vector)
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]
    chosen = choose_known(QUICK, "a thief came", candidates, Taken())
    assert [answer.text for answer in chosen] == [texts[0], texts[2]]
    assert choose_known(QUICK, "a thief came", [], Taken()) == []
    near = [replace(candidate, realised="0" * 16) for candidate in candidates]
    assert len(choose_known(QUICK, "a thief came", near, Taken())) == 1, "the Hamming rule holds, too"


@pytest.mark.parametrize("system", ["cod3s-mmi-mmi", "cod3s-beam-beam", "cod3s-mmi-critic", "s2s"])
def test_the_systems_of_the_paper_recall_nothing(generator: Generator, system: str) -> None:
    answers = generator.generate(SOURCES[0], "effect", system=system, options=QUICK)
    assert not any(answer.known_for for answer in answers)


def test_bins_that_somebody_asks_for_get_only_what_is_written_in_them(generator: Generator) -> None:
    first, *_ = generator.generate(SOURCES[0], "effect", options=QUICK)
    answers = generator.generate(SOURCES[0], "effect", options=QUICK, signatures=[[first.signature]])
    assert not any(answer.known_for for answer in answers)


def test_recall_0_recalls_nothing(generator: Generator) -> None:
    answers = generator.generate(SOURCES[0], "effect", options=QUICK.with_values(recall=0))
    assert len(answers)
    assert not any(answer.known_for for answer in answers)


def test_a_known_answer_is_as_plausible_alone_as_in_generation(generator: Generator) -> None:
    answers = generator.generate(SOURCES[0], "effect", options=QUICK)
    pairs = [Pair("effect", answers.source, answer.text) for answer in answers if answer.known_for]
    judged = generator.judge(pairs).tolist()
    assert judged == pytest.approx([a.plausibility for a in answers if a.known_for], abs=1e-5)


def test_a_critic_of_known_answers_needs_them(bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "without"
    shutil.copytree(bundle, folder)
    write_facts(folder, replace(read_facts(folder), known=""))
    with pytest.raises(BundleError, match="known answers") as caught:
        load(folder).generate(SOURCES[0], "effect", options=QUICK)
    assert "cod3s remember" in caught.value.hint


def test_remember_gives_a_bundle_its_answers(tiny_bundle: TinyBundle, tmp_path: Path, here: Run) -> None:
    folder, table = tmp_path / "bundle", tmp_path / "answers.tsv"
    shutil.copytree(tiny_bundle.exact, folder)
    table.write_text(ANSWERS)
    assert f"answers to {len(set(SOURCES))} sources" in here("remember", folder, table).stderr
    known = load(folder).models.known
    assert known is not None
    assert len(known) == len(set(SOURCES))
    again = here("remember", folder, table)
    assert again.returncode
    assert "--force" in again.stderr
    table.write_text("source\trelation\ttarget\nit rained\tsequel\twe got wet\n")
    assert "no relation 'sequel'" in here("remember", folder, table, "--force").stderr
    table.write_text("source\trelation\ttarget\n")
    assert "no answers" in here("remember", folder, table, "--force").stderr
    assert len(load(folder).models.known or ()) == len(set(SOURCES))
