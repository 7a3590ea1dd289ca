"""The table of false cues: uses of a cue word that do not state a cause, each with its reason."""

from cod3s.harvest.rules import FalseCue, Position

_SUBJECT = r"(?:i|we|he|she|they|it|you|there|this|these|those|the|my|our|his|her|their|people|everyone|everybody)"

FALSE_CUES: tuple[FalseCue, ...] = (
    FalseCue("because of", reason="because of: a noun phrase follows"),
    FalseCue("because", last="not never nor", reason="not because: the cause is denied"),
    FalseCue("because", last="just merely", reason="just because: the cause is denied"),
    FalseCue("because", before=r"(?:\bnot|n['’]t) \w+ ", reason="not because: the cause is denied"),
    FalseCue("because", last="and or but", before=r". \w+ ", reason="stacked conjunctions"),
    FalseCue("because", last="than if maybe more rather", reason="stacked conjunctions"),
    FalseCue(
        "because",
        before=r"(?:\b(?:is|are|was|were|be|been|am)|['’](?:s|re)) (?:(?:\w+ly|just|only|perhaps|maybe|not) )?",
        reason="it is because: the effect is not a clause",
    ),
    FalseCue("because", after=r"\W*(?:$|because\b|of\b)", reason="nothing after the cue"),
    FalseCue("so", next="that that's that’s", reason="so that: a purpose, or a remark"),
    FalseCue("so", next="on forth", reason="so in an idiom"),
    FalseCue("so", after=r"-|,? (?:to speak|help me|be it|then\?)", reason="so in an idiom"),
    FalseCue("so", before="-", reason="so in an idiom"),
    FalseCue(
        "so",
        last="""do does did done doing think thinks thought say says said saying hope hopes hoped believe believed
        suppose supposed guess imagine told afraid feel felt even if or more less ever not quite just how why never
        rather only""",
        reason="so stands for something said before",
    ),
    FalseCue("so", next="what who whom whose why how when where which", reason="opens a question or a topic"),
    FalseCue(
        "so",
        next="am is are was were do does did have has had can could will would should must may might",
        reason="an inversion",
    ),
    FalseCue("so", next="much many few little far long often soon badly well", reason="so of degree"),
    FalseCue(
        "so", after=rf" (?!{_SUBJECT}\b)(?:\w+ly|\w+ (?:a|an|that|as|was|were|is|are))\b", reason="so of degree"
    ),
    FalseCue("since", last="ever", reason="since of time"),
    FalseCue("since", next="then when last", reason="since of time"),
    FalseCue(
        "since", after=r" (?:\d|\w+ing\b|the (?:age|beginning|start|day|time|days|dawn)\b)", reason="since of time"
    ),
    FalseCue("since", after=r".*(?:\b(?:have|has|had)|['’]ve)\b(?! to\b)", reason="since of time"),
    FalseCue("thus", next="far", reason="an adverb inside a clause"),
    FalseCue("thus", last="and", reason="an adverb inside a clause"),
    # Without a comma, an opening "thus" says how ("Thus he spoke") as often as why.
    FalseCue("thus", Position.OPENING, after=" ", reason="an adverb inside a clause"),
    *(
        FalseCue(word, before=r"\w, ", after=",", reason="an adverb inside a clause")
        for word in ("therefore", "thus", "consequently")
    ),
    FalseCue(
        "led to",
        last="""path road way door doors gate stair stairs steps staircase corridor passage hall hallway tunnel
        street lane track trail trails alley avenue bridge ladder opening footprints archway doorway that which
        who she he they""",
        reason="led of place",
    ),
)
