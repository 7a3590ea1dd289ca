"""The table of cues, and the table of named patterns that tell the cause from the effect."""

from cod3s.harvest.rules import Pattern, Position, Shape

# In lower case, and each alternative begins with a letter: the scanner relies on that for its speed. Of two cues
# that start alike, the longer one comes first.
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

_ADVERBS = r"(?: (?:partly|mainly|largely|mostly|chiefly|primarily|simply|only|probably|precisely|perhaps))?,? "

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "that's because",
        position=Position.OPENING,
        name="thats-because",
        order="because",
        shape=Shape.NEXT,
        example="The garden looks wild. That's because nobody cuts the hedge.",
    ),
    Pattern(
        "because",
        position=Position.OPENING,
        name="because-first",
        shape=Shape.OPENING,
        wary="effect",
        example="Because the bakery was closed, we had crackers for breakfast.",
    ),
    Pattern(
        "because",
        before=_ADVERBS,
        name="because",
        order="because",
        example="We stayed home because the road was icy.",
    ),
    Pattern(
        "that's why",
        position=Position.OPENING,
        name="thats-why",
        shape=Shape.NEXT,
        example="My father was a sailor. That's why I know these knots.",
    ),
    Pattern(
        "that's why",
        position=Position.PAUSE,
        name="thats-why",
        example="The wall is thin, that's why we always whisper.",
    ),
    Pattern(
        "which is why",
        position=Position.PAUSE,
        name="which-is-why",
        example="My boss hates meetings, which is why we write everything down.",
    ),
    Pattern(
        "as a result of",
        position=Position.OPENING,
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
    Pattern(
        "as a result",
        position=Position.OPENING,
        name="as-a-result",
        shape=Shape.NEXT,
        example="The ferry sank. As a result, we were stranded.",
    ),
    Pattern(
        "as a result",
        position=Position.PAUSE,
        name="as-a-result",
        example="The bees had left; as a result, the orchard died.",
    ),
    Pattern(
        "due to the fact that",
        position=Position.OPENING,
        name="due-to-the-fact-first",
        shape=Shape.OPENING,
        example="Due to the fact that the lock was changed, he slept outside.",
    ),
    Pattern(
        "due to the fact that",
        before=_ADVERBS,
        name="due-to-the-fact",
        order="because",
        example="The bread did not rise due to the fact that the yeast was old.",
    ),
    Pattern(
        "so",
        position=Position.OPENING,
        name="sentence-so",
        shape=Shape.NEXT,
        wary="both",
        example="The lift was broken. So we took the stairs.",
    ),
    Pattern("so", position=Position.PAUSE, name="so", example="The oven was broken, so we ordered pizza."),
    Pattern(
        "so",
        before=" (?:and )?",
        after=r" (?:i|we|he|she|they|it) (?!can|could|will|would|may|might|wo|do|does|did|get|gets)\w",
        name="so",
        example="It was raining so we stayed in.",
    ),
    Pattern(
        "since",
        position=Position.OPENING,
        name="since-first",
        shape=Shape.OPENING,
        example="Since the shop takes only cash, I ran to the bank.",
    ),
    *(
        pattern
        for word, example in (
            ("therefore", "The witness vanished, therefore the case was dropped."),
            ("thus", "The valve had rusted shut, thus the pressure rose."),
            ("hence", "The ink had faded, hence the clerk wrote the wrong date."),
            ("consequently", "Her visa had expired; consequently, she could not fly."),
        )
        for pattern in (
            Pattern(word, position=Position.OPENING, name=word, shape=Shape.NEXT, example=example),
            Pattern(word, position=Position.PAUSE, name=word, example=example),
        )
    ),
    Pattern(
        "caused by",
        before=r" (?:was|were|is|are) (?:(?:mostly|mainly|largely|partly|probably) )?",
        name="caused-by",
        order="because",
        first_phrase=True,
        second_phrase=True,
        example="The delay at the border was caused by a long strike.",
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
    Pattern(
        "for", before=r"[,;] ", name="for", order="because", example="He said nothing, for he feared the old man."
    ),
)
