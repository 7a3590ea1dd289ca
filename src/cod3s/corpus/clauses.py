"""Test whether one side of a causal statement can stand as a clause. A side in, a reason against it or None out.

The tests are cheap on purpose (word lists and word ends, no parser): a side that they doubt is refused.
"""

import re
from dataclasses import dataclass

from cod3s.corpus import lexicon
from cod3s.corpus.trimming import QUOTE

_MARKUP = re.compile(r"[\[\]{}<>|\\`=@#*_^~/()]|&\w|\bhttps?:|\bwww\.")
_OTHER_CUE = re.compile(
    r"\bbecause\b|,\s+(?:and\s+)?so\b|\btherefore\b|\bwhich is why\b|\bas a result\b|\bso that\b|\b(?:that|this)(?:['’]s| is) why\b",
    re.IGNORECASE,
)
_CUT_OFF = re.compile(r"\b(?:that|and|but|or|if|when|which|as|namely|say|like),\s[^,]*$", re.IGNORECASE)
_SUBORDINATE = re.compile(
    r"(?:(?:even |just |only )?(?:if|when|as)|whenever|while|once|after|before|although|though|unless|until|since|"
    r"suppose|given)\b",
    re.IGNORECASE,
)
_EMBEDDED = re.compile(
    r"\b(?:whether|wonder|wonders|wondered|wondering|(?:asks|asked) (?:if|why|how|what)|know if)\b", re.IGNORECASE
)
_RELATIVE = re.compile(r"\b(?:who|whom|whose|which)\b", re.IGNORECASE)
_NOT_A_PHRASE = re.compile(
    r",|\b(?:i|he|she|we|they|you|it|what|who|which|that|this|if|when|because|there|is|are|was|were|will|would|could|"
    r"can|did|does|do|had|has|have|not|caused|led)\b",
    re.IGNORECASE,
)
_TOPIC = re.compile(
    r"(?:you|it|that|this|there|what|if|i (?:think|guess|mean|was like|was wondering|wanted to (?:ask|know|start)|would)|"
    r"i['’]d|we (?:talked|had|were talking)|the (?:question|idea|thing|first|next|other|way))\b",
    re.IGNORECASE,
)
_REMARK = re.compile(r"(?:that|this|it|here)(?:['’]s| is| was) (?:a |an |the |my |our )?(?:\w+ ){0,3}\w+$", re.IGNORECASE)
_TROUBLE = re.compile(
    r"n['’]t\b|\b(?:no|not|never|nobody|nothing|none|without|too|only|out of|lost|lose|miss(?:ed|ing)|lack(?:ed|ing)?|"
    r"broke|broken|breaks|fail(?:s|ed)?|died|dead|closed|shut|refused|forgot(?:ten)?|afraid|feared|scared|worried|hated|"
    r"tired|sick|ill|hungry|cold|hot|late|hard|difficult|impossible|expensive|slow|wrong|problems?|trouble|danger\w*|"
    r"stuck|stopped|gone|empty|full|hurt|needed|wanted|busy|alone|dark|rain(?:ing|ed)?|snow(?:ing|ed)?)\b",
    re.IGNORECASE,
)
_MUST = re.compile(
    r"\b(?:ha(?:ve|s|d) to|needs? to|needed to|must|can['’]?t|cannot|could(?:n['’]t| not)|won['’]t|decided|ended up|"
    r"no longer)\b",
    re.IGNORECASE,
)
_NO_VERB = lexicon.EMPTY_WORDS | frozenset("his hers ours theirs across less us plus yes thus towards always".split())
_EDGES = ",.\"'“”!"


@dataclass(frozen=True)
class Limits:
    """How many words a side may have; at most 20 is the original code's limit."""

    min_words: int = 3
    max_words: int = 20


def opens_clause(side: str) -> bool:
    """Whether `side` begins with a subject of its own: a pronoun, a determiner, a name or a bare noun."""
    tokens = side.split(None, 3)
    if len(tokens) < 2:
        return False
    first, second = (token.replace("’", "'").strip(_EDGES) for token in tokens[:2])
    small = first.lower()
    if small == "that":
        return second in lexicon.AUXILIARIES
    if small.partition("'")[0] in lexicon.OPENERS or (first[:1].isupper() and small not in lexicon.NO_SUBJECT):
        return True
    return (small.endswith("s") or small in lexicon.BARE_NOUNS) and _is_verb(second)


def clause_fault(side: str, limits: Limits) -> str | None:
    """Why `side` cannot stand as a clause, or None when it can."""
    tokens = _tokens(side)
    fault = _shared_fault(side, tokens, limits)
    if fault:
        return fault
    if tokens[0] in lexicon.NO_SUBJECT or _is_order(tokens):
        return "no subject"
    if _SUBORDINATE.match(side):
        if not opens_clause(side.partition(", ")[2]):
            return "a condition or a comparison"
    elif not (side[0].isupper() or tokens[0] in lexicon.LEAD_INS or opens_clause(side)):
        return "no subject"
    verbs = _count_verbs(tokens)
    if verbs == 0 or (verbs == 1 and _RELATIVE.search(side)):
        return "no verb"
    return "an embedded question" if _EMBEDDED.search(side) else None


def tells_a_consequence(first: str, second: str) -> bool:
    """Whether `second` follows from `first` rather than opens a topic: both tell of the past, or it says must.

    In speech a sentence opens with "so" as often to go on as to conclude.
    """
    if _TOPIC.match(second) or _REMARK.match(first):
        return False
    tokens = _tokens(second)
    if _MUST.search(second) or tokens[0] in ("he", "she"):
        return True
    return _is_past(tokens[1:5]) and _is_past(_tokens(first)[1:])


def tells_of_trouble(side: str) -> bool:
    """Whether `side` says that something is missing, wrong or too much: what people act upon."""
    return _TROUBLE.search(side) is not None


def phrase_fault(side: str, limits: Limits) -> str | None:
    """Why `side` cannot stand as a noun phrase, or None when it can."""
    tokens = _tokens(side)
    fault = _shared_fault(side, tokens, limits)
    if fault:
        return fault
    if tokens[0] in lexicon.NO_SUBJECT or tokens[0] in lexicon.NO_PHRASE or _NOT_A_PHRASE.search(side):
        return "not a noun phrase"
    return None


def _shared_fault(side: str, tokens: list[str], limits: Limits) -> str | None:
    if len(tokens) < limits.min_words:
        return "too short"
    if len(tokens) > limits.max_words:
        return "too long"
    if "?" in side:
        return "a question"
    if QUOTE.search(side):
        return "a piece of a quotation"
    if _MARKUP.search(side):
        return "markup"
    if _OTHER_CUE.search(side):
        return "another connective"
    if tokens[-1] in lexicon.DANGLING or _CUT_OFF.search(side):
        return "cut off"
    return "no content" if lexicon.EMPTY_WORDS.issuperset(tokens) else None


def _tokens(side: str) -> list[str]:
    return [token.strip(_EDGES) for token in side.replace("’", "'").lower().split()]


def _is_order(tokens: list[str]) -> bool:
    """An imperative: a verb's base form opens the side and is not the subject of a verb ("work was slow")."""
    return tokens[0] in lexicon.BASE_VERBS and not any(
        _is_verb(token) and token not in lexicon.BASE_VERBS for token in tokens[1:2]
    )


def _count_verbs(tokens: list[str]) -> int:
    """How many words look like finite verbs. A word that may be a noun ("the approach") counts after none of its kind."""
    count = int("'" in tokens[0] and _is_verb(tokens[0]))
    for before, token in zip(tokens, tokens[1:], strict=False):
        if token in lexicon.MAYBE_NOUNS:
            count += before not in lexicon.BEFORE_NOUNS
        else:
            count += _is_verb(token)
    if count == 0 and tokens[0] in lexicon.SUBJECTS:
        return 1
    if count == 0 and tokens[0] in lexicon.DETERMINERS:
        # "my aunt knits": a noun that is no plural, then a word in -s.
        heads = zip(tokens[1:3], tokens[2:4], strict=False)
        return int(any(verb[-1:] == "s" and noun[-1:] != "s" and verb not in _NO_VERB for noun, verb in heads))
    return count


def _is_past(tokens: list[str]) -> bool:
    return any(token in lexicon.PAST or (token.endswith("ed") and len(token) > 4) for token in tokens)


def _is_verb(token: str) -> bool:
    if token in lexicon.VERBS or (token.endswith("ed") and len(token) > 4):
        return True
    base, apostrophe, ending = token.partition("'")
    if not apostrophe:
        return False
    return ending in ("re", "m", "ll", "ve", "d", "t") or (ending == "s" and base in lexicon.OPENERS)
