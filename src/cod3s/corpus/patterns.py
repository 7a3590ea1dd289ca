"""The named causal patterns and the traps beside them, as two tables. They hold rules and read no text.

Every occurrence of a cue word meets the rules of its cue from top to bottom, traps first. The first rule that
fits decides: a trap refuses with its reason, a pattern says which side is the cause.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

Order = Literal["because", "so"]
Wariness = Literal["none", "effect", "both"]


class Shape(Enum):
    """Where the two sides stand around the cue."""

    BETWEEN = "first CUE second"
    OPENING = "CUE first, second"
    NEXT = "First. CUE second"


@dataclass(frozen=True)
class Rule:
    """When a rule fits: `before` ends exactly where the cue begins, `after` begins where the cue ends."""

    cue: str
    before: str = ""
    after: str = ""
    _before: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _after: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_before", re.compile(f"(?:{self.before})\\Z"))
        object.__setattr__(self, "_after", re.compile(self.after))

    def fit(self, left: str, right: str) -> int | None:
        """How many characters of `left` belong to the cue (its comma, its "and"), or None if it does not fit.

        Both are small letters.
        """
        if self.after and self._after.match(right) is None:
            return None
        # Forty characters hold any `before`; without the limit every rule scans all of a long sentence.
        before = self._before.search(left, max(0, len(left) - 40))
        return None if before is None else len(left) - before.start()


@dataclass(frozen=True)
class Trap(Rule):
    """A use of the cue that states no cause: `reason` is what the summary counts it under."""

    reason: str = ""


@dataclass(frozen=True)
class Pattern(Rule):
    """A use of the cue that states a cause.

    `order` says which side comes first in the text: the effect ("because") or the cause ("so").
    `wary` marks a cue that speakers also use to go on: the effect, or both sides, must look their part.
    `first_phrase` and `second_phrase` allow that side to be a noun phrase rather than a clause.
    """

    name: str = ""
    order: Order = "so"
    shape: Shape = Shape.BETWEEN
    example: str = ""
    first_phrase: bool = False
    second_phrase: bool = False
    wary: Wariness = "none"


# Small letters, each alternative beginning with a letter of its own: the scanner relies on that for its speed.
# Of two that begin alike the longer stands first.
CUES: dict[str, str] = {
    "that's because": r"that(?:['’]s| is| was) because|this(?: is| was) because",
    "because of": r"because of",
    "because": r"because",
    "that's why": r"that(?:['’]s| is| was) why|this(?: is| was) why",
    "which is why": r"which (?:is|was) why",
    "as a result of": r"as a (?:direct )?(?:result|consequence) of",
    "as a result": r"as a (?:result|consequence)",
    "due to the fact that": r"due to the fact that|owing to the fact that",
    "so": r"so",
    "since": r"since",
    "therefore": r"therefore",
    "thus": r"thus",
    "hence": r"hence",
    "consequently": r"consequently",
    "caused by": r"caused by",
    "caused": r"caused",
    "led to": r"led to|resulted in",
    "for": r"for(?= (?:i|he|she|we|they|it|there) )",
}

_OPEN = r"^[\"'“‘(]?(?:(?:and|but|well|yeah|yes|no|oh|now|okay|right)(?:, | )){0,3}"
_JOINT = r",? ?(?:(?:[;:,]|--|—|–|-|\.\.\.|…) ?)(?:and |but )?"
_ADVERBS = r"(?: (?:partly|mainly|largely|mostly|chiefly|primarily|simply|only|probably|precisely|perhaps))?,? "
_BE = r"(?:\b(?:is|are|was|were|be|been|am)|['’](?:s|re)) (?:(?:\w+ly|just|only|perhaps|maybe|not) )?"

TRAPS: tuple[Trap, ...] = (
    Trap("because of", reason="because of: a noun phrase follows"),
    Trap("because", before=r"(?:\bnot|n['’]t|\bnever|\bnor)(?: \w+)? ", reason="not because: the cause is denied"),
    Trap("because", before=r"\b(?:just|merely) ", reason="just because: the cause is denied"),
    Trap("because", before=r"(?:(?<!^)\b(?:and|or|but)|\b(?:than|if)|[,;] maybe) ", reason="stacked conjunctions"),
    Trap("because", before=_BE, reason="it is because: the effect is not a clause"),
    Trap("because", after=r"\W*(?:$|because\b|of\b)", reason="nothing after the cue"),
    Trap("so", before=r"-", reason="so in an idiom"),
    Trap("so", after=r"-|,? (?:on|forth|to speak|help|be it|called|then\?)\b", reason="so in an idiom"),
    Trap("so", after=r" that(?:['’]s)?\b", reason="so that: a purpose, or a remark"),
    Trap(
        "so",
        before=r"\b(?:do|does|did|done|doing|think|thinks|thought|say|says|said|saying|hope|hopes|hoped|believe|"
        r"believed|suppose|supposed|guess|imagine|told|afraid|feel|felt|even|if|or|more|less|ever|not|quite|just|"
        r"how|why|never|rather|only) ",
        reason="so stands for something said before",
    ),
    Trap("so", after=r",? (?:what|who|whom|whose|why|how|when|where|which)\b", reason="opens a question or a topic"),
    Trap(
        "so",
        after=r",? (?:am|is|are|was|were|do|does|did|have|has|had|can|could|will|would|should|must|may|might)\b",
        reason="an inversion",
    ),
    Trap(
        "so",
        after=r" (?:much|many|few|little|far|long|often|soon|badly|well|\w+ly|\w+ (?:a|an|that|as|was|were|is|are))\b",
        before=r"(?<![,;.…–—-]) |^|, ",
        reason="so of degree",
    ),
    Trap("since", before=r"\bever ", reason="since of time"),
    Trap("since", after=r" (?:then|when|\d|last|\w+ing|the (?:age|beginning|start|day|time|days|dawn))\b", reason="since of time"),
    Trap("since", after=r".*(?:\b(?:have|has|had)|['’]ve)\b(?! to\b)", reason="since of time"),
    Trap("thus", after=r" far\b", reason="an adverb inside a clause"),
    *(
        Trap(word, before=r"\w, ", after=",", reason="an adverb inside a clause")
        for word in ("therefore", "thus", "consequently")
    ),
    Trap("thus", before=r"\band ", reason="an adverb inside a clause"),
    # Without its comma an opening "thus" says how ("Thus he spoke") as often as why.
    Trap("thus", before=r"^\W*", after=r" ", reason="an adverb inside a clause"),
    Trap(
        "led to",
        before=r"\b(?:path|road|way|door|doors|gate|stairs?|steps|staircase|corridor|passage|hall|hallway|tunnel|"
        r"street|lane|track|trail|trails|alley|avenue|bridge|ladder|opening|footprints|archway|doorway|that|which|"
        r"who|she|he|they) ",
        reason="led of place",
    ),
)

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "that's because",
        before=_OPEN,
        name="thats-because",
        order="because",
        shape=Shape.NEXT,
        example="The garden looks wild. That's because nobody cuts the hedge.",
    ),
    Pattern(
        "because",
        before=_OPEN,
        name="because-first",
        shape=Shape.OPENING,
        wary="effect",
        example="Because the bakery was closed, we had crackers.",
    ),
    Pattern("because", before=_ADVERBS, name="because", order="because", example="We stayed because the road was icy."),
    Pattern(
        "that's why",
        before=_OPEN,
        name="thats-why",
        shape=Shape.NEXT,
        example="My father was a sailor. That's why I know these knots.",
    ),
    Pattern("that's why", before=_JOINT, name="thats-why", example="The wall is thin, that's why we whisper."),
    Pattern("which is why", before=_JOINT, name="which-is-why", example="My boss hates meetings, which is why we write."),
    Pattern(
        "as a result of",
        before=_OPEN,
        name="as-a-result-of-first",
        shape=Shape.OPENING,
        first_phrase=True,
        example="As a result of the long drought, the lake fell.",
    ),
    Pattern(
        "as a result of",
        before=",? ",
        name="as-a-result-of",
        order="because",
        second_phrase=True,
        example="The school closed as a result of the budget cuts.",
    ),
    Pattern("as a result", before=_OPEN, name="as-a-result", shape=Shape.NEXT, example="The ferry sank. As a result, we were stranded."),
    Pattern("as a result", before=_JOINT, name="as-a-result", example="The bees left; as a result, the orchard bore no fruit."),
    Pattern(
        "due to the fact that",
        before=_OPEN,
        name="due-to-the-fact-first",
        shape=Shape.OPENING,
        example="Due to the fact that the lock was new, he could not get in.",
    ),
    Pattern(
        "due to the fact that",
        before=_ADVERBS,
        name="due-to-the-fact",
        order="because",
        example="The bread did not rise due to the fact that the yeast was old.",
    ),
    Pattern("so", before=_OPEN, name="sentence-so", shape=Shape.NEXT, wary="both", example="The lift was broken. So we took the stairs."),
    Pattern("so", before=_JOINT, name="so", example="The oven was broken, so we ordered pizza."),
    Pattern(
        "so",
        before=" (?:and )?",
        after=r" (?:i|we|he|she|they|it) (?!can|could|will|would|may|might|wo|do|does|did|['’]ll|['’]d|get|gets)\w",
        name="so",
        example="It was raining so we stayed in.",
    ),
    Pattern(
        "since",
        before=_OPEN,
        name="since-first",
        shape=Shape.OPENING,
        example="Since the shop takes only cash, I ran to the bank.",
    ),
    *(
        pattern
        for word, example in (
            ("therefore", "The witness vanished, therefore the case was dropped."),
            ("thus", "The valve had rusted shut, thus the pressure rose."),
            ("hence", "The ink had faded, hence the clerk misread the date."),
            ("consequently", "Her visa had expired; consequently, she could not fly."),
        )
        for pattern in (
            Pattern(word, before=_OPEN, name=word, shape=Shape.NEXT, example=example),
            Pattern(word, before=_JOINT, name=word, example=example),
        )
    ),
    Pattern(
        "caused by",
        before=r" (?:was|were|is|are) (?:(?:mostly|mainly|largely|partly|probably) )?",
        name="caused-by",
        order="because",
        first_phrase=True,
        second_phrase=True,
        example="The delay at the border was caused by a strike.",
    ),
    Pattern(
        "caused",
        before=r" (?:(?:has|have|had) )?",
        name="caused",
        first_phrase=True,
        second_phrase=True,
        example="The sudden frost caused the water pipes to burst.",
    ),
    Pattern(
        "led to",
        before=r" (?:(?:has|have|had) )?",
        name="led-to",
        first_phrase=True,
        second_phrase=True,
        example="Years of overfishing led to the collapse of the port.",
    ),
    Pattern("for", before=r"[,;] ", name="for", order="because", example="He said nothing, for he feared the old man."),
)
