"""Tell an answer about another person: what I did after losing my key becomes what she did after losing hers.

It knows pronouns and the most common verbs; where it is not sure about the grammar, it gives no answer.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from cod3s.text import words
from cod3s.word_lists import word_pattern, word_set

_FORMS = {  # subject, object, before a noun, alone, reflexive
    "I": ("I", "me", "my", "mine", "myself"),
    "we": ("we", "us", "our", "ours", "ourselves"),
    "he": ("he", "him", "his", "his", "himself"),
    "she": ("she", "her", "her", "hers", "herself"),
    "they": ("they", "them", "their", "theirs", "themselves"),
}
_SUBJECT, _OBJECT, _BEFORE_NOUN = range(3)
_SINGULAR = ("he", "she")
_FIRST = ("I", "we")
_PLURAL = ("we", "they")
_OTHERS = word_set("roles")
_PETS = word_set("pets")
_SPOUSES = word_set("spouses")
_PEOPLE = _OTHERS | word_set("people")
_NOT_NAMES = word_set("not names")
_OF_PEOPLE = ("er", "ers", "or", "ors", "ist", "ists", "ian", "ians", "man", "men", "woman", "women")
_NOT_PEOPLE = word_set("not people")
_PRONOUNS = {form.lower(): person for person, forms in _FORMS.items() for form in forms}
_PERSON_OF = _PRONOUNS | dict.fromkeys(word_set("he nouns"), "he") | dict.fromkeys(word_set("she nouns"), "she")
_NEUTRAL = {form.lower(): he for forms in _FORMS.values() for form, he in zip(forms, _FORMS["he"], strict=True)}
_TOKEN = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?|[^A-Za-z]+")
_ADVERBS = word_set("adverbs before verbs")
_AFTER_OBJECT = word_set("after an object")
_AGREEING = [  # with I, with he or she, with we or they
    ("am", "is", "are"),
    ("was", "was", "were"),
    ("wasn't", "wasn't", "weren't"),
    ("have", "has", "have"),
    ("haven't", "hasn't", "haven't"),
    ("do", "does", "do"),
    ("don't", "doesn't", "don't"),
]
_FORMS_OF_VERB = {form: row for row in _AGREEING for form in row}
_SAME_FOR_ALL = word_set("same for all")
_PRESENT = word_set("present in -ed")
_WHERE = word_set("before places")
_OF_SEVERAL = re.compile(word_pattern("of several"), re.IGNORECASE)


def retell(answers: Iterable[str], told: str, asked: str, relation: str = "") -> Iterator[str]:
    """The answers to the source `told`, as answers to the source `asked`, where that can be done.

    Answers about another he or she than those in both sources are left out. If somebody does something to me,
    effects are about me, and causes about who did it.
    """
    if relation == "effect" and _is_done_to_me(asked) and _i_act(told) and _speaks_of_others(told):
        return  # what I do to them is not done to me
    teller, hero = hero_of(told), _new_hero(told, asked, relation)
    nobody = hero is None and names_nobody(asked)
    elsewhere = hero in (None, *_FIRST) and not nobody and _part_of_me(told) > _part_of_me(asked)
    somebody_of_mine = hero in _SINGULAR and teller in _FIRST and _is_somebody_of_mine(told)
    strangers = {*_SINGULAR} - {hero} - (_known_from(told, asked) if hero == teller else set())
    for answer in answers:
        people = _people(answer)
        if elsewhere and people & {*_FIRST}:  # what I did is not what somebody else did
            continue
        if hero in _SINGULAR and "we" in people and "we" not in _people(told):  # I and somebody else
            continue
        if hero in _PLURAL and teller not in _PLURAL and _SPOUSES & {*words(answer)}:
            continue
        if teller in _PLURAL and hero in ("I", *_SINGULAR) and _OF_SEVERAL.search(answer):
            continue
        if nobody or somebody_of_mine:  # who tells that the cake burned has baked it; what I did stays with me
            others = people & {*_SINGULAR}
            text = retold(answer, others.pop(), hero or "I") if len(others) == 1 else answer
        else:
            text = retold(answer, teller, hero) if hero else answer
        if text and (hero is None or not _people(text) & strangers):
            yield text


def _new_hero(told: str, asked: str, relation: str) -> str | None:
    """Whom the answers to `told` are about if they answer `asked`; None if they need no other person."""
    teller, hero = hero_of(told), hero_of(asked)
    if hero in _FIRST:
        if teller not in (None, *_FIRST) and _is_another(words(asked), words(told)):
            return "they" if _is_plural(words(asked)[1]) else None
        return hero
    if hero is None or not _is_done_to_me(asked):
        return hero
    if teller in _FIRST and not (relation == "cause" and _i_act(told)):
        return teller
    # He broke his phone, my sister broke mine: it happens to the owner.
    if relation == "effect" and (teller is None or _FORMS[teller][_BEFORE_NOUN] in words(told)):
        return "I" if {"my", "me"} & {*words(asked)} else "we"
    return hero


def _known_from(told: str, asked: str) -> set[str]:
    """Who he and she may be in an answer, apart from the hero: people that both sources speak of."""
    if _others(told) & _others(asked):  # my boss may be he or she
        return {*_SINGULAR}
    people = ({_PERSON_OF[noun] for noun in _nouns(text) if noun in _PERSON_OF} for text in (told, asked))
    return set.intersection(*people)


def _others(text: str) -> set[str]:
    """The people and animals that a text speaks of, if their nouns do not say whether they are he or she."""
    return {
        noun
        for noun in _nouns(text)
        if noun not in _PERSON_OF
        and (noun in _PEOPLE or noun in _PETS or (noun.endswith(_OF_PEOPLE) and noun not in _NOT_PEOPLE))
        and not _is_plural(noun)
    }


def _nouns(text: str) -> list[str]:
    """The words of a text, without what possessives add."""
    return [word.partition("'")[0] for word in words(text)]


def names_nobody(text: str) -> bool:
    """Whether a statement surely names no person, neither by a pronoun nor by a noun or a name."""
    told = words(text)
    if not told:
        return True  # a picture or punctuation
    first, *others = text.split()
    if any(word[0].isupper() for word in others) or (first[0].isupper() and told[0] not in _NOT_NAMES):
        return False  # it may be a name
    return not any(noun in _PERSON_OF or noun in _PEOPLE or noun.endswith(_OF_PEOPLE) for noun in _nouns(text))


def hero_of(text: str) -> str | None:
    """Whom a statement is about, as far as its pronouns and a few nouns tell: I, we, he, she or they."""
    told = words(text)
    people = [_PERSON_OF[word] for word in told if word in _PERSON_OF]
    subjects = [person for person in _FIRST if person.lower() in told]
    if told[:1] == ["they"]:  # who stole my bike: it is about me
        subjects += [person for person in people if person in _FIRST]
    others = [person for person in people if person not in _FIRST]  # my sister is she
    return next(iter([*subjects, *others, *people]), None)


def _is_another(asked: Sequence[str], told: Sequence[str]) -> bool:
    """Whether `my boss` acts in a source as he or she does in the other one, which does not speak of a boss."""
    mine = asked[0] in ("my", "our") and not {"i", "we"} & {*asked}
    return mine and len(asked) > 1 and asked[1] not in told


def _is_somebody_of_mine(text: str) -> bool:
    """Whether it is about `my friend`, and not about what I did."""
    told = words(text)
    return told[:1] in (["my"], ["our"]) and len(told) > 1 and told[1] in _PEOPLE and not _i_act(text)


def _happens_to_me(asked: Sequence[str]) -> bool:
    """Whether somebody does it to me or to something of mine, as in `my sister forgot my birthday`."""
    return bool({"me", "us"} & {*asked}) or any(
        word in ("my", "our") and noun not in _PERSON_OF and noun not in _PEOPLE and before not in _WHERE
        for before, word, noun in zip(["", *asked], asked, asked[1:], strict=False)
    )


def _is_done_to_me(text: str) -> bool:
    return _happens_to_me(words(text)) and not _i_act(text)


def _i_act(text: str) -> bool:
    return bool({"i", "we", "im", "ive"} & {*_nouns(text)})


def _speaks_of_others(text: str) -> bool:
    """Whether it speaks of anybody but me or us."""
    return bool(_others(text)) or any(_PERSON_OF.get(noun, "I") not in _FIRST for noun in _nouns(text))


def _is_plural(noun: str) -> bool:
    """Whether it speaks of several: the neighbours, but not the boss."""
    return noun.endswith("s") and not noun.endswith("ss")


def _part_of_me(text: str) -> int:
    """How much I or we have to do with it: 2 if it happens to us or to something of ours, 1 if we are mentioned.

    `my phone` is something of mine, `my cousin` is somebody else.
    """
    if _happens_to_me(words(text)) or _i_act(text):
        return 2
    return int(bool(_people(text) & {*_FIRST}))


def neutral(text: str) -> str:
    """The text with `he` for every person, whatever that does to its verbs, so that only what happens counts."""
    return _TOKEN.sub(lambda token: _NEUTRAL.get(token[0].lower(), token[0]), text)


def retold(text: str, teller: str | None, hero: str) -> str | None:
    """A clause about `teller`, told about `hero`; None if both are in it, or if the grammar is not sure.

    I and we are one, and also the teller if the clause answered a source about nobody.
    """
    tellers = _FIRST if teller is None or teller in _FIRST else (teller,)
    if hero in tellers:
        return text
    people = _people(text)
    if hero in people or (hero in _FIRST and people & {*_FIRST}):
        return None
    tokens = _TOKEN.findall(text)
    changed: list[str] = []
    for position, token in enumerate(tokens):
        pronoun, _, contracted = token.lower().replace("’", "'").partition("'")
        person = _PRONOUNS.get(pronoun, "")
        if person not in tellers:
            changed.append(token)
            continue
        form = _form(pronoun, person, tokens[position + 1 :])
        changed.append(_FORMS[hero][form] + (f"'{contracted}" if contracted else ""))
        if form == _SUBJECT and contracted not in ("d", "ll"):
            of_verb = None if contracted else _verb_position(tokens, position)
            verb = None if of_verb is None else _agreeing(tokens[of_verb], person, hero)
            if of_verb is None or verb is None:
                return None
            tokens[of_verb] = verb
    return "".join(changed)


def _people(text: str) -> set[str]:
    """Who the pronouns of a text are about."""
    return {_PRONOUNS[word] for word in words(text) if word in _PRONOUNS}


def _form(pronoun: str, person: str, following: Sequence[str]) -> int:
    """Which form of the pronoun it is; `her` may be two."""
    forms = [form.lower() for form in _FORMS[person]]
    if pronoun == "her":
        noun = next((token.lower() for token in following if token.strip()), "")
        return _BEFORE_NOUN if noun.isalpha() and noun not in _AFTER_OBJECT else _OBJECT
    return forms.index(pronoun)


def _verb_position(tokens: Sequence[str], subject: int) -> int | None:
    """The position of the verb that follows the subject."""
    for position in range(subject + 1, len(tokens)):
        if tokens[position].strip() and tokens[position].lower() not in _ADVERBS:
            return position if tokens[position][0].isalpha() else None
    return None


def _agreeing(verb: str, person: str, hero: str) -> str | None:
    """The verb as it agrees with the hero; None if that is not sure."""
    word = verb.lower().replace("’", "'")
    if word in _FORMS_OF_VERB:
        return _FORMS_OF_VERB[word][0 if hero == "I" else 1 if hero in _SINGULAR else 2]
    past = word.endswith("ed") and word not in _PRESENT
    if word in _SAME_FOR_ALL or past or (person in _SINGULAR) == (hero in _SINGULAR):
        return verb
    return None
