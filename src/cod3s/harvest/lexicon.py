"""English word lists for the tests of a clause: what can open it, and what looks like a verb."""


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PRONOUNS = word_set("i you he she it we they there this that")

# Pronouns that can only be a subject: a verb follows at once or soon after.
SUBJECTS = word_set("i he she we they")

DETERMINERS = word_set(
    """the a an my your his her its our their these those some any no every each all both most many several few
    another either neither one two three four five six seven eight nine ten half"""
)

INDEFINITES = word_set(
    """nobody everybody somebody anybody everyone someone anyone nothing everything something anything none"""
)

# What may open a clause: its subject's first word.
OPENERS = PRONOUNS | DETERMINERS | INDEFINITES

# Nouns that come without an article often enough to be known as subjects.
BARE_NOUNS = word_set(
    """people water work rain snow money life time food music traffic light air wind fire smoke men women children
    mother father mom dad grandma grandpa god police"""
)

AUXILIARIES = word_set(
    """am is are was were do does did have has had can could will would shall should may might must ain't isn't
    aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't can't cannot couldn't won't wouldn't
    shan't shouldn't mayn't mightn't mustn't needn't gonna wanna gotta"""
)

_REGULAR = word_set(
    """accept add admit advise afford agree aim allow announce answer appear apply approach argue arrive ask attack
    avoid bake beg begin behave belong block boil borrow bother breathe burn call cancel care carry cause
    change charge check claim clean climb close collapse collect come complain consider contain continue
    control cook cost cough count cover crash create cross cry cut damage dance decide declare decline
    deliver demand deny depend deserve destroy die disappear discover discuss dislike divide double doubt
    dream dress drop dry earn eat end enjoy enter escape exist expect explain explode face fail fear feed
    fill finish fire fit fix float flow fold follow force frown gather gain grab greet guard guess guide
    happen hate help hide hit hope hunt hurry hurt ignore imagine improve include increase insist intend
    invite join jump keep kick kill kiss knock know lack land last laugh lean learn leave let lie lift like
    limp listen live look lose love lower make manage mark marry matter mean melt mention mind miss move
    multiply name need notice obey object offer open order owe own pack paint pass pay perform permit pick
    place plan plant play please point pour practise practice praise pray prefer prepare press pretend
    prevent print produce promise protect prove provide pull push put rain raise reach read realise realize
    receive recognise recognize record recover refuse regret reject release rely remain remember remind
    remove rent repair repeat reply report represent require rescue resemble rest retire return reveal ride
    ring rise roll rot ruin run rush save say scare scream seem sell send separate serve settle shake share
    shine shoot shout show shut sing sink sit sleep slip smell smile smoke snow solve sound speak spend
    spill split spread stand stare start stay steal stick stop strike struggle study suffer suggest suit
    supply support suppose surprise survive suspect swear sweat swim switch take talk taste teach tear tell
    tend test thank think threaten throw tie touch train travel treat tremble trust try turn understand use
    value vanish vary visit vote wait wake walk want warn wash waste watch water wear weep weigh whisper win
    wish wonder work worry write yell give go get see find feel hear hold become bring build buy break catch
    choose draw drink drive fall fight fly forget forgive freeze grow hang lay lead meet set sew spoil stink
    sweep tire trade vanish creak leak matter"""
)

_IRREGULAR_PAST = word_set(
    """ate awoke became began bent bled blew bought bred broke brought built burnt burst came caught chose clung
    crept cut dealt drank dreamt drew drove dug fed fell felt fled flew forbade forgave forgot fought found
    froze gave went got grew had heard held hid hung kept knelt knew laid lay leapt learnt led left lent let
    lit lost made meant met paid put quit ran rang read rode rose said sang sank sat saw sent set shone
    shook shot shrank shut slept slid smelt sold sought spat sped spent spilt split spoilt spoke sprang
    spread stood stole struck stuck stung sung swam swept swore swung thought threw took taught tore told
    understood undertook wept withdrew woke won wore wove wrote bade dared"""
)


def third_person(base: str) -> str:
    """A verb with he, she or it; the plural of a noun is spelled the same way."""
    if base.endswith(("s", "sh", "ch", "x", "z", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeou":
        return base[:-1] + "ies"
    return base + "s"


BASE_VERBS = _REGULAR
# Forms that are as often a noun ("the approach", "her shows"): they count as a verb only where a verb can come.
MAYBE_NOUNS = (BASE_VERBS | frozenset(map(third_person, _REGULAR))) - AUXILIARIES
PAST = word_set("was were had did wasn't weren't hadn't didn't could couldn't would wouldn't") | _IRREGULAR_PAST
# Words in -ed that are not past forms.
NO_PAST = word_set(
    "feed seed need deed weed reed speed breed bleed indeed exceed succeed hundred sacred naked wicked shed"
)
VERBS = AUXILIARIES | MAYBE_NOUNS | PAST
BEFORE_NOUNS = (DETERMINERS - word_set("one all both each")) | word_set(
    """of in on at by for from with to into about over under between than as and or no not very such own same other
    new old good great little long first last whole next own i'm it's that's"""
)

# A side that ends in one of these was cut off in the middle.
DANGLING = word_set(
    """the a an my your his her its our their of to and or but nor than as if whether because so that which who
    whom whose with from into onto upon between among during is are was were be am not very quite too i he
    she we they 's who's what's it's that's gonna
    say says need needs like toward towards feel what where when how why"""
)

# A side that opens with one of these has no subject: it is a piece of a clause, an order or a question.
NO_SUBJECT = AUXILIARIES | word_set(
    """which who whom whose what how why where whether than to of by be being been and or nor except let let's
    please here's what's how's due instead thanks thank welcome partially sans rather
    maybe perhaps"""
)

# Words that may stand before a subject.
LEAD_INS = word_set(
    """sometimes usually often typically generally normally always never today yesterday tomorrow
    later soon suddenly in on at from by for with during within without under over despite most only even
    once after before when while if unless until although though as since already unfortunately fortunately
    luckily recently originally initially apparently somehow meanwhile nowadays back last next then now"""
)

PREPOSITIONS = word_set("in on at from by for with during within without under over despite")

# A noun phrase does not open with one of these.
NO_PHRASE = word_set(
    """i you he she it we they me him her us them this that these those there here having being for from in on at
    by with without after before during as instead about yet thus so twice not"""
)

# Words without content: a side made only of them says nothing.
_FILLING_WORDS = word_set(
    """it's that's he's she's they're we're you're i'm there's i've we've you've they've i'd he'd she'd we'd they'd
    you'd i'll we'll you'll he'll she'll they'll me him us them yes yeah okay ok well right true sure just really
    also even then now here such thing things stuff way like on in at by for up out off about over what how why
    when where know think say guess mean done go goes going went get gets got same else more much"""
)
EMPTY_WORDS = OPENERS | AUXILIARIES | DANGLING | _FILLING_WORDS

# Words of other causal statements: a side that holds one is not a single clause.
CUES = word_set("because therefore")
CUE_PARTS = word_set("so why result")

RELATIVES = word_set("who whom whose which")

# A side that holds one of these reports a question.
WONDERING = word_set("whether wonder wonders wondered wondering curious")

# A noun phrase holds none of these.
CLAUSE_WORDS = word_set(
    """i he she we they you it what who which that this if when because there is are was were will would could can
    did does do had has have not caused led"""
)

NO_VERB = EMPTY_WORDS | word_set("his hers ours theirs across less us plus yes thus towards always")
