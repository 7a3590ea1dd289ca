"""Sets of candidates in which every meaning is said three times, in rank order, for tests of `select`.

`SETS` were at hand when the default was chosen, the others were written after it. A good choice of as many
candidates as a set has groups holds one of each group. Scores favour the first group, as the scores of a model
favour what it likes to repeat.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ParaphraseSet:
    """Groups of three sentences that say the same; `candidates` lists them group by group."""

    topic: str
    groups: tuple[tuple[str, str, str], ...]

    @property
    def candidates(self) -> list[str]:
        return [sentence for group in self.groups for sentence in group]

    @property
    def scores(self) -> list[float]:
        """Log-probabilities that fall from group to group, and slightly inside a group."""
        return [-1.0 - 0.3 * group - 0.05 * wording for group in range(len(self.groups)) for wording in range(3)]

    def covered(self, indices: list[int]) -> set[int]:
        """The numbers of the groups that the chosen candidates come from."""
        return {index // 3 for index in indices}


SETS = (
    ParaphraseSet(
        "a hotel that disappointed",
        (
            (
                "The receptionist was rude.",
                "The receptionist was impolite to us.",
                "The desk clerk was unfriendly.",
            ),
            ("The bed was too hard.", "The mattress was as hard as a board.", "We slept on a very hard bed."),
            ("Breakfast was cold.", "The breakfast was served cold.", "They gave us cold eggs for breakfast."),
            ("The street was noisy at night.", "Traffic noise kept us awake.", "Cars made noise all night long."),
        ),
    ),
    ParaphraseSet(
        "the power went out",
        (
            ("The food in the freezer thawed.", "Everything in the freezer melted.", "The frozen food spoiled."),
            ("We lit candles.", "Candles were lit in every room.", "Mother lit a few candles."),
            ("The computer lost my essay.", "My unsaved essay was gone.", "I lost the essay I was typing."),
            (
                "The traffic lights stopped working.",
                "The signals at the junction failed.",
                "Traffic signals went dark.",
            ),
            ("The elevator got stuck.", "People were trapped in the lift.", "The lift stopped between floors."),
        ),
    ),
    ParaphraseSet(
        "a runner who finished last",
        (
            ("He had twisted his ankle.", "His ankle was sprained.", "He ran with an injured ankle."),
            ("He had not trained for months.", "He skipped training all winter.", "He had barely practised."),
            ("He started far too fast.", "He sprinted at the start and tired.", "His opening pace was too quick."),
            ("His shoes fell apart.", "The sole of his shoe came off.", "One of his running shoes tore."),
        ),
    ),
    ParaphraseSet(
        "the town after the storm",
        (
            (
                "A tree fell on the school.",
                "The school was hit by a falling tree.",
                "A tree crashed onto the school.",
            ),
            ("The harbour was flooded.", "Water covered the docks.", "Flood water stood in the harbour."),
            ("Volunteers cooked soup.", "Neighbours made soup for everybody.", "Hot soup was handed out."),
            (
                "The mayor asked for money.",
                "The mayor requested emergency funds.",
                "Town hall appealed for funds.",
            ),
            (
                "Insurance refused to pay.",
                "The insurers rejected the claims.",
                "No claim was paid by the insurer.",
            ),
            ("Birds returned to the lake.", "Ducks came back to the lake.", "The lake filled with birds again."),
        ),
    ),
    ParaphraseSet(
        "what to do with an old bicycle",
        (
            ("Sell it at a flea market.", "Offer it for sale at the market.", "Put it up for sale second-hand."),
            (
                "Turn the wheels into a lamp.",
                "Build a lamp from its wheels.",
                "Make a ceiling lamp of the wheels.",
            ),
            ("Give it to a refugee family.", "Donate it to a family in need.", "Donate it to charity."),
            ("Repair it and ride to work.", "Fix it and cycle to the office.", "Mend it and commute with it."),
        ),
    ),
    ParaphraseSet(
        "a meeting about a late product",
        (
            ("Testing took longer than planned.", "The tests overran.", "We needed more time for testing."),
            ("A supplier went bankrupt.", "One of our suppliers is insolvent.", "The parts maker went bust."),
            ("Two engineers resigned.", "Two of our engineers quit.", "We lost two engineers last month."),
            (
                "The customer changed the order.",
                "The client altered what they wanted.",
                "The client's order changed.",
            ),
            ("Customs held the shipment.", "The cargo is stuck at customs.", "Customs officers kept our goods."),
        ),
    ),
    ParaphraseSet(
        "why she moved to the coast",
        (
            ("She loves swimming in the sea.", "She likes to swim in the ocean.", "Sea swimming is her passion."),
            ("Her sister lives there.", "She wanted to be near her sister.", "Her sister has a house there."),
            ("The rent is lower.", "Flats are cheaper to rent there.", "She pays less rent there."),
            (
                "The doctor advised clean air.",
                "Her doctor told her to seek fresh air.",
                "Fresh air helps her lungs.",
            ),
        ),
    ),
)

LATER_SETS = (
    ParaphraseSet(
        "a dog that will not eat",
        (
            ("The dog has a toothache.", "One of its teeth hurts.", "Its teeth are sore."),
            ("It was fed at the neighbour's.", "The neighbours gave it food.", "Next door had already fed it."),
            ("It misses its owner.", "The dog longs for its master.", "It is sad because its owner left."),
            ("The food smells strange.", "The kibble has gone off.", "Its food smells spoiled."),
        ),
    ),
    ParaphraseSet(
        "ideas for a school trip",
        (
            (
                "Visit the science museum.",
                "Go and see the museum of science.",
                "Spend the day at a science museum.",
            ),
            ("Hike up a mountain.", "Climb a hill with the class.", "Walk to the top of a mountain."),
            ("Bake bread at a bakery.", "Let a baker show how bread is made.", "Make bread with a baker."),
            ("Clean up the beach.", "Collect rubbish on the beach.", "Pick up litter along the shore."),
            ("Watch a play at the theatre.", "See a theatre performance.", "Go to the theatre together."),
        ),
    ),
    ParaphraseSet(
        "why the cafe closed",
        (
            ("The rent doubled.", "The landlord asked for twice the rent.", "Their rent went up too much."),
            ("The cook retired.", "Their chef went into retirement.", "The old cook stopped working."),
            ("A fire destroyed the kitchen.", "The kitchen burned down.", "Flames ruined the kitchen."),
            ("Hardly any guests came.", "There were too few customers.", "Nobody went there any more."),
        ),
    ),
    ParaphraseSet(
        "what the new app needs",
        (
            ("It should start faster.", "The app takes too long to open.", "Launching it is far too slow."),
            ("Add a dark theme.", "I would like a dark mode.", "Please offer dark colours at night."),
            ("Let me export my notes.", "Notes should be exportable.", "I want to download all my notes."),
            ("It drains the battery.", "My battery is empty after an hour.", "It uses too much power."),
            ("The text is too small.", "I cannot read the tiny letters.", "Please make the font bigger."),
        ),
    ),
    ParaphraseSet(
        "a letter that never arrived",
        (
            ("The address was wrong.", "It was sent to the wrong address.", "The house number was incorrect."),
            ("The postman was ill.", "The mail carrier was sick.", "Our postwoman had the flu."),
            ("There was no stamp on it.", "She forgot the stamp.", "The envelope had no postage."),
            ("A dog tore it up.", "The puppy chewed the letter.", "The dog ripped the envelope."),
        ),
    ),
)

# Written last, with few words in common inside a group, so that a choice by words fails.
SETS_IN_OTHER_WORDS = (
    ParaphraseSet(
        "what is wrong with the flat",
        (
            (
                "The music next door was too loud.",
                "The neighbours played their music at full volume.",
                "Loud music came through the wall.",
            ),
            ("The lift was out of order.", "The elevator did not work.", "Nobody could use the broken lift."),
            (
                "The heating failed in january.",
                "We had no heat in the middle of winter.",
                "The radiators stayed cold all january.",
            ),
            (
                "The rent went up by a third.",
                "The landlord raised the rent sharply.",
                "The flat became much more expensive.",
            ),
        ),
    ),
    ParaphraseSet(
        "why the garden failed",
        (
            ("Slugs ate the lettuce.", "The lettuce was eaten by slugs.", "Snails and slugs destroyed the salad."),
            (
                "It did not rain for six weeks.",
                "There was a drought for more than a month.",
                "No rain fell for weeks.",
            ),
            ("The soil is poor.", "There is little in this soil to feed plants.", "The ground lacks nutrients."),
            (
                "A late frost killed the buds.",
                "Frost in may froze the blossoms.",
                "The flowers froze in a cold spring night.",
            ),
            (
                "He planted the seeds too deep.",
                "The seeds lay too far below the surface.",
                "The seeds were put too deep into the earth.",
            ),
        ),
    ),
    ParaphraseSet(
        "complaints about a phone",
        (
            (
                "The battery is empty after two hours.",
                "The battery drains far too quickly.",
                "The phone must be charged all the time.",
            ),
            (
                "The screen cracked when it fell.",
                "The display broke after a drop.",
                "It fell and the glass shattered.",
            ),
            (
                "The camera takes blurry pictures.",
                "Photos come out unsharp.",
                "Pictures from it are never in focus.",
            ),
            (
                "Support never answered my mails.",
                "Customer service ignored every message.",
                "Nobody at the help desk replied.",
            ),
        ),
    ),
    ParaphraseSet(
        "why the train was late",
        (
            ("A tree fell on the tracks.", "A fallen tree blocked the line.", "The rails were blocked by a tree."),
            (
                "The driver was ill.",
                "There was no driver because he was sick.",
                "The engine driver had called in sick.",
            ),
            (
                "A signal failed near the station.",
                "The signals were broken.",
                "There was a fault in the signalling.",
            ),
            (
                "Someone pulled the emergency brake.",
                "A passenger stopped the train with the emergency handle.",
                "The emergency brake was pulled.",
            ),
            (
                "Snow covered the points.",
                "The switches were frozen with snow.",
                "Snow jammed the railway switches.",
            ),
        ),
    ),
    ParaphraseSet(
        "how she passed the exam",
        (
            (
                "She had studied every evening.",
                "She learned hard for weeks.",
                "She had revised night after night.",
            ),
            ("The questions were easy.", "It was a simple test.", "There was nothing difficult in the exam."),
            (
                "Her friend let her copy.",
                "She copied from the girl beside her.",
                "She cheated with a friend's help.",
            ),
            ("The teacher liked her.", "She was the teacher's favourite.", "The teacher was fond of her."),
        ),
    ),
    ParaphraseSet(
        "what went wrong with the bread",
        (
            ("The yeast was too old.", "He used expired yeast.", "The yeast was no longer alive."),
            (
                "The oven was too hot.",
                "He baked it at too high a temperature.",
                "The oven's heat was far too strong.",
            ),
            ("He forgot the salt.", "There was no salt in the dough.", "The salt had been left out."),
            (
                "The dough did not rest long enough.",
                "He gave the dough no time to rise.",
                "It was baked before it could rise.",
            ),
        ),
    ),
    ParaphraseSet(
        "why the dog barked",
        (
            (
                "A stranger rang the bell.",
                "Someone unknown stood at the door.",
                "An unfamiliar person came to the door.",
            ),
            ("A cat ran across the yard.", "There was a cat in the yard.", "It saw a cat outside."),
            ("It was hungry.", "Nobody had fed it.", "Its bowl had been empty since morning."),
            ("There was thunder.", "A storm frightened it.", "It is scared of thunderstorms."),
            ("It wanted to go out.", "It needed a walk.", "It had to be taken outside."),
        ),
    ),
    ParaphraseSet(
        "why the firm failed",
        (
            ("They ran out of money.", "The firm went bankrupt.", "There was no cash left."),
            ("A rival was faster.", "A competitor launched first.", "Another company beat them to the market."),
            ("The founders fell out.", "The two founders quarrelled.", "There was a fight between the founders."),
            (
                "Nobody wanted the product.",
                "There was no demand for it.",
                "Customers had no use for what they made.",
            ),
        ),
    ),
)
