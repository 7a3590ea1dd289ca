"""The table of cues, and the table of named patterns that tell the cause from the effect."""

from typing import Any

from cod3s.harvest.rules import Pattern, Position, Shape

# In lower case, and each alternative begins with a letter: the scanner relies on that for its speed. Of two cues
# that start alike, the longer comes first.
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
_PERFECT = r" (?:(?:has|have|had) )?"
_TO_BE = r" (?:was|were|is|are) (?:(?:mostly|mainly|largely|partly|probably) )?"
_SO_SUBJECT = r" (?:i|we|he|she|they|it) (?!can|could|will|would|may|might|wo|do|does|did|get|gets)\w"


def _opens(cue: str, name: str, example: str, **more: Any) -> Pattern:
    """The cue opens the sentence: "CUE first, second"."""
    return Pattern(cue, Position.OPENING, name=name, shape=Shape.OPENING, example=example, **more)


def _resumes(cue: str, name: str, example: str, **more: Any) -> Pattern:
    """The cue opens the next sentence: "First. CUE second"."""
    return Pattern(cue, Position.OPENING, name=name, shape=Shape.NEXT, example=example, **more)


def _pauses(cue: str, name: str, example: str) -> Pattern:
    """The cue follows a comma or a dash: "First, CUE second"."""
    return Pattern(cue, Position.PAUSE, name=name, example=example)


def _joins(cue: str, name: str, example: str, **more: Any) -> Pattern:
    """The cue is between its sides: "first CUE second"."""
    return Pattern(cue, name=name, example=example, **more)


_BECAUSE: dict[str, Any] = {"order": "because"}
_PHRASES: dict[str, Any] = {"first_phrase": True, "second_phrase": True}

PATTERNS: tuple[Pattern, ...] = (
    _resumes(
        "that's because",
        "thats-because",
        "The garden looks wild. That's because nobody cuts the hedge.",
        **_BECAUSE,
    ),
    _opens(
        "because", "because-first", "Because the bakery was closed, we had crackers for breakfast.", wary="effect"
    ),
    _joins("because", "because", "We stayed home because the road was icy.", before=_ADVERBS, **_BECAUSE),
    _resumes("that's why", "thats-why", "My father was a sailor. That's why I know these knots."),
    _pauses("that's why", "thats-why", "The wall is thin, that's why we always whisper."),
    _pauses("which is why", "which-is-why", "My boss hates meetings, which is why we write everything down."),
    _opens(
        "as a result of",
        "as-a-result-of-first",
        "As a result of the long drought, the lake fell.",
        first_phrase=True,
    ),
    _joins(
        "as a result of",
        "as-a-result-of",
        "The school closed as a result of the budget cuts.",
        before=",? ",
        second_phrase=True,
        **_BECAUSE,
    ),
    _resumes("as a result", "as-a-result", "The ferry sank. As a result, we were stranded."),
    _pauses("as a result", "as-a-result", "The bees had left; as a result, the orchard died."),
    _opens(
        "due to the fact that",
        "due-to-the-fact-first",
        "Due to the fact that the lock was changed, he slept outside.",
    ),
    _joins(
        "due to the fact that",
        "due-to-the-fact",
        "The bread did not rise due to the fact that the yeast was old.",
        before=_ADVERBS,
        **_BECAUSE,
    ),
    _resumes("so", "sentence-so", "The lift was broken. So we took the stairs.", wary="both"),
    _pauses("so", "so", "The oven was broken, so we ordered pizza."),
    _joins("so", "so", "It was raining so we stayed in.", before=" (?:and )?", after=_SO_SUBJECT),
    _opens("since", "since-first", "Since the shop takes only cash, I ran to the bank."),
    *(
        make(word, word, example)
        for word, example in (
            ("therefore", "The witness vanished, therefore the case was dropped."),
            ("thus", "The valve had rusted shut, thus the pressure rose."),
            ("hence", "The ink had faded, hence the clerk wrote the wrong date."),
            ("consequently", "Her visa had expired; consequently, she could not fly."),
        )
        for make in (_resumes, _pauses)
    ),
    _joins(
        "caused by",
        "caused-by",
        "The delay at the border was caused by a long strike.",
        before=_TO_BE,
        **_BECAUSE,
        **_PHRASES,
    ),
    _joins("caused", "caused", "The sudden frost caused the water pipes to burst.", before=_PERFECT, **_PHRASES),
    _joins(
        "led to", "led-to", "Years of overfishing led to the collapse of the port.", before=_PERFECT, **_PHRASES
    ),
    _joins("for", "for", "He said nothing, for he feared the old man.", before=r"[,;] ", **_BECAUSE),
)
