"""Filters against the noise of harvested pairs: broken sentences, chat, copies, sensitive topics.

The rules were written after reading pairs of thirteen corpora; docs/measured/corpus.md shows what each removes.
They favour precision: a rule that also removed many good pairs was narrowed or left out.
"""

from collections.abc import Callable

from cod3s.corpus.conditions import Filter, either, matches, word_count
from cod3s.unsuitable import HARMLESS, PROFANITY, read_rules

_START = r"^[^\p{L}\p{N}]*"
_END = r"[^\p{L}\p{N}]*$"
_AFTER = r"($|[^\p{L}\p{N}'’-])"
_FEW_WORDS = 3

# A side cannot end in one of these: an article, a determiner, a conjunction, a title, a shortened verb.
_OPEN_WORDS = (
    "an|the|my|your|our|their|its|every|and|or|but|because|if|unless|although|whereas|than|very|mr|mrs|dr|prof|st|"
    "i'm|i've|i'd|i'll|you're|you've|you'll|he's|he'd|he'll|she's|she'd|she'll|it's|it'll|we're|we've|we'll|they're|"
    "they've|they'll|there's|that's|who's|such as|as well as|in order to"
)
_AUXILIARIES = (
    "don't|doesn't|didn't|isn't|wasn't|weren't|can't|couldn't|won't|wouldn't|hasn't|haven't|hadn't|shouldn't|"
    "is|was|were|has|had|does|would|could|should"
)
# Harvesters cut "no one seems to care" to "one seems to care", and "so far they" to "far they".
_LOST_NO = (
    "one (has|had|was|is|did|does|would|will|ever|else|really|wants|wanted|seems|seemed|knows|knew|cares|cared|"
    "likes|came|told|said|saw|believes|believed|understands|understood|listens|remembers|noticed)|"
    "(body|person|thing) (has|had|was|is|can|could|would|will|wants|knows|likes|cares|seems)|"
    "matter (what|how|who|where)|longer|far (i|you|he|she|it|we|they)"
)
_OPENERS = (
    "and|or|because|therefore|thus|hence|however|moreover|furthermore|additionally|anyway|anyways|um|uh|hmm|yeah|"
    "nope|hey|my gosh|wow|firstly|secondly|thirdly|lastly|first of all|for example|for instance|in conclusion|"
    "that's why|that is why|which|funny thing is|the thing is|point is|the point is|bottom line|long story short|"
    "needless to say|"
    "(well|oh|ah|ok|okay|yes|no|man|dude|also|plus|besides|first|second|third|finally|so|then|again),"
)
_FILLERS = (
    "i mean|you know what|know what i mean|like i said|as i said|so to speak|or whatever|and stuff|and such|blah|"
    "yada|or something like that|and all that|in other words|let's just say|let's say|sort of like|kind of like"
)
_TAGS = (
    "you see|you know|i suppose|i guess|i think|i believe|i say|i said|i hope|i fear|i'm sure|he said|she said|"
    "he says|she says|right|though|anyway|actually|really|basically|or so|et cetera|etc"
)
_CHAT = (
    "(ha){2,}h?|(he){2,}h?|lol|lmao|rofl|omg|wtf|wth|btw|imho|imo|tbh|idk|jk|brb|afk|ttyl|xoxo|u|ur|r|ya|yall|ya'll|"
    "n|w|b4|2day|2morrow|2nite|tonite|nite|gr8|cuz|coz|cos|bc|thru|tho|thx|pls|plz|gunna|guna|dunno|cya|luv|wat|wut|"
    "dat|dis|da|dem|im|ive|dont|doesnt|didnt|cant|couldnt|wont|wouldnt|shouldnt|isnt|wasnt|arent|werent|havent|"
    "hasnt|hadnt|thats|theres|whats|youre|theyre|hes|shes|alot|aswell|everytime|lil|bday|gf|bf|ppl|msg|meh|argh|"
    "ugh|yay|woohoo"
)
_EMPTY_WORDS = (
    "a an the this that these those there here i me my mine you your yours he him his she her hers it its we us "
    "our ours they them their theirs one ones someone somebody something anyone anybody anything everyone "
    "everybody everything none nothing nobody who whom what which where when why how whatever thing things stuff "
    "way lot is are was were be been being am do does did done doing has have had having will would can could "
    "should may might must shall going go goes went gone get gets got getting make makes made making let lets say "
    "says said know knows knew known think thinks thought want wants wanted like likes liked see sees saw seen "
    "need needs needed mean means meant happen happens happened come comes came take takes took good bad true "
    "right wrong sure ok okay nice great same different able possible not no never ever always just only even "
    "still also too very really so quite pretty actually probably maybe and or but if as of to in on at by for "
    "from with about into over out up down off than then now again more most much many all some any other another "
    "both such back away well because that's it's i'm i've i'd i'll you're you've you'd you'll he's he'd he'll "
    "she's she'd she'll we're we've we'd we'll they're they've they'd they'll there's what's don't doesn't didn't "
    "isn't aren't wasn't weren't can't cannot couldn't won't wouldn't shouldn't haven't hasn't hadn't"
)
_OWN_TEXT = (
    "(this|my|that|last|previous|next|the) (blog|blogs|post|posts|posting|entry|entries|journal|diary|review|"
    "reviews|essay|essays|paragraph|passage|article|author|podcast|episode|comment|comments|survey|list)|blog|"
    "blogs|blogger|blogging|blogged|xanga|livejournal|webring|imdb|this (site|page|website|show|series|film|movie|"
    "flick|product|item)|(first|second|third|last|final|main|another|my|one|the) reason|reason why|"
    "my (topic|opinion|conclusion)|policy (1|2|one|two)|the (narrator|text|writer)"
)


def broken() -> Filter:
    return _a_side(
        "broken",
        "a word or a contraction cut in two, speech cut off, or letters in a wrong encoding",
        r"\p{L}[-‐] \p{L}",
        r"--|\p{L}[-–—]$",
        r"(?i) (n['’]t|nt|['’](s|re|ve|ll|d|m))( |$)",
        r"\p{L} [.,;:!?]|[.,;:!?]\p{L}{2}",
        r"[âÃÂ]( |$|\p{P})|â€",
        r"\p{L}[$%*!]+\p{L}",
    )


def unfinished() -> Filter:
    return _a_side(
        "unfinished",
        "a side ends in a word that asks for another: an article, a conjunction, a title, a shortened verb",
        rf"(?i)(^|[^\p{{L}}\p{{N}}'’])({_curly(_OPEN_WORDS)}){_END}",
        rf" a{_END}",  # small: with a capital it can be a grade
    )


def headless() -> Filter:
    return _a_side(
        "headless",
        "a side lost its beginning: it starts with a number, a verb, or what follows `no` or `so`",
        rf"(?i){_START}({_curly(_AUXILIARIES)}|{_LOST_NO}){_AFTER}",
        rf"{_START}\p{{N}}+[,.):]",
    )


def filler() -> Filter:
    return _a_side(
        "filler",
        "a side begins, continues or ends with filler words: well, I mean, you see",
        rf"(?i){_START}({_curly(_OPENERS)}){_AFTER}",
        rf"(?i)(^|[^\p{{L}}])({_curly(_FILLERS)})($|[^\p{{L}}])",
        rf"(?i), ({_curly(_TAGS)}){_END}",
    )


def chat() -> Filter:
    return _a_side(
        "chat",
        "net speak, missing apostrophes, laughter, stretched letters or shouting",
        _whole(_CHAT),
        "|".join(f"{letter}{{3,}}" for letter in "abcdefghijklmnopqrstuvyz"),
        r"\b\p{Lu}{5,}\b",
        r"[!?]{2}|&|;\)|:\)",
    )


def vague() -> Filter:
    nothing = rf"(?i)^([^\p{{L}}]*({_curly(_EMPTY_WORDS.replace(' ', '|'))})($|[^\p{{L}}'’]+))+$"
    short = either(lambda side: f"{word_count(side)} <= {_FEW_WORDS} AND {matches(side, nothing)}")
    return Filter(
        "vague",
        f"both sides, or one of at most {_FEW_WORDS} words, hold only pronouns and words that can mean anything",
        f"{short} OR ({matches('source', nothing)} AND {matches('target', nothing)})",
    )


def copied() -> Filter:
    def stems(side: str) -> str:
        plain = f"regexp_replace(lower({side}), '[^\\p{{L}}\\p{{N}} ]', '', 'g')"
        return f"list_distinct(list_transform(string_split({plain}, ' '), lambda word: word[:4]))"

    source, target = stems("source"), stems("target")
    return Filter(
        "copied",
        "more than four fifths of a side's words, by their first four letters, are in the other side",
        f"5 * len(list_intersect({source}, {target})) > 4 * least(len({source}), len({target}))",
    )


def template() -> Filter:
    wrong = r"(?i)(^|[^\p{L}'’])(i|you|we|they) (feels|wants|likes|needs|has|knows|loves|thinks|is|goes)( |$)"
    ending = r"\p{L}\(\p{L}+\)"
    would, want = r"(?i)^you would ", r"(?i)^(you|your) "
    return Filter(
        "template",
        "filled into a pattern: wrong agreement (they feels), an ending left to choose (own(s)), or"
        " `you would … because you …`",
        f"({either(lambda side: f'{matches(side, wrong)} OR {matches(side, ending)}')})"
        f" OR ({matches('source', would)} AND {matches('target', want)})"
        f" OR ({matches('target', would)} AND {matches('source', want)})",
    )


def meta() -> Filter:
    return _a_side(
        "meta", "it is about the text it comes from: this post, my third reason, this film", _whole(_OWN_TEXT)
    )


def profanity() -> Filter:
    return _unsuitable("profanity", "a swear word from a short list", lambda topic: topic == PROFANITY)


def sensitive() -> Filter:
    return _unsuitable(
        "sensitive",
        "slurs, sex, suicide, or a person's origin, colour, faith, sex, orientation or disability: not for the"
        " invented sentences of a demo",
        lambda topic: topic != PROFANITY,
    )


def _unsuitable(name: str, reason: str, about: Callable[[str], bool]) -> Filter:
    """Removes a pair if a side says what an answer must not say, even if the other side mentions it as well."""
    rules = read_rules()
    alone = [rule for rule in rules.stops if about(rule.topic) and rule.kind != "beside"]
    stops = "|".join(rule.pattern for rule in alone)
    keys = f" ({'|'.join(sorted({key for rule in alone for key in rule.keys}))}) "

    def removes(side: str) -> str:
        plain = f"plain_words({side})"
        serious = plain
        for _ in range(2):  # neighbouring phrases share a space
            serious = f"regexp_replace({serious}, '{rules.harmless}', ' {HARMLESS} ', 'g')"
        stopped = f"{matches(plain, stops)} AND {matches(serious, stops)}"
        return f"CASE WHEN {matches(plain, keys)} THEN {stopped} ELSE FALSE END"

    return Filter(name, reason, either(removes))


def _a_side(name: str, reason: str, *patterns: str) -> Filter:
    """Removes a pair if any of the patterns matches either side."""
    return Filter(name, reason, either(lambda side: " OR ".join(matches(side, pattern) for pattern in patterns)))


def _whole(words: str) -> str:
    """A pattern for any of these words as a whole, in any case."""
    return rf"(?i)(^|[^\p{{L}}\p{{N}}'’-])({_curly(words)}){_AFTER}"


def _curly(words: str) -> str:
    """The words with either apostrophe."""
    return words.replace("'", "['’]")
