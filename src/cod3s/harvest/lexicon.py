"""Sets of English words for the tests of a clause: what can open it, and what looks like a verb.

`data/words.tsv` lists the words, and says what each list is for.
"""

from cod3s.word_lists import word_set


def third_person(base: str) -> str:
    """A verb with he, she or it; the plural of a noun is spelled the same way."""
    if base.endswith(("s", "sh", "ch", "x", "z", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeou":
        return base[:-1] + "ies"
    return base + "s"


PRONOUNS, SUBJECTS = word_set("pronouns"), word_set("subjects")
DETERMINERS = word_set("determiners")
# What may open a clause: its subject's first word.
OPENERS = PRONOUNS | DETERMINERS | word_set("indefinites")
BARE_NOUNS = word_set("bare nouns")
AUXILIARIES = word_set("auxiliaries")
BASE_VERBS = word_set("verbs")
# Forms that are as often a noun ("the approach", "her shows"): they count as a verb only where a verb can come.
MAYBE_NOUNS = (BASE_VERBS | frozenset(map(third_person, BASE_VERBS))) - AUXILIARIES
PAST, NO_PAST = word_set("other past") | word_set("irregular past"), word_set("no past")
VERBS = AUXILIARIES | MAYBE_NOUNS | PAST
BEFORE_NOUNS = (DETERMINERS - {"one", "all", "both", "each"}) | word_set("before nouns")
DANGLING = word_set("dangling")
NO_SUBJECT = AUXILIARIES | word_set("no subject")
LEAD_INS, PREPOSITIONS = word_set("lead-ins"), word_set("prepositions")
NO_PHRASE, CLAUSE_WORDS = word_set("no phrase"), word_set("clause words")
EMPTY_WORDS = OPENERS | AUXILIARIES | DANGLING | word_set("filling")
# Words of other causal statements: a side that holds one is not a single clause.
CUES, CUE_PARTS = frozenset({"because", "therefore"}), frozenset({"so", "why", "result"})
RELATIVES = frozenset({"who", "whom", "whose", "which"})
WONDERING = word_set("wondering")
NO_VERB = EMPTY_WORDS | word_set("no verb")
