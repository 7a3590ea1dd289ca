"""A study made up for tests: sources with answers of several systems, gold items and checks, nothing generated."""

from collections.abc import Mapping

from cod3s.study.plan.folder import ANSWER, CHECK, GOLD, RIGHT, WRONG, Credit, Exclusion, Item, Study

SCALE = ("impossible", "unlikely", "possible", "plausible", "likely", "certain")


def made_study(raters_per_item: int = 4, exclusion: Exclusion | None = None) -> Study:
    return Study(
        id="made",
        name="made up",
        created="2020-01-01T00:00:00.000Z",
        seed=1,
        raters_per_item=raters_per_item,
        per_rater=50,
        question="How plausible is this?",
        scale=SCALE,
        instructions="Read each statement.\n\nThen rate it.",
        completion_code="HARBOUR7",
        admin_token_hash="",
        templates={"effect": "{source}, so {target}", "cause": "{source} because {target}"},
        exclusion=exclusion or Exclusion(),
    )


def made_items(
    systems: Mapping[str, int],
    sources: int = 10,
    relations: tuple[str, ...] = ("effect", "cause"),
    checks: int = 3,
    gold: bool = True,
) -> list[Item]:
    """So many answers of each system to each source, ranked in their order."""
    items = []
    for relation in relations:
        word = ", so" if relation == "effect" else " because"
        for number in range(sources):
            source = f"barrel {number} leaked"
            for system, answers in systems.items():
                for rank in range(1, answers + 1):
                    target = f"{system} said {rank}"
                    items.append(
                        Item(
                            f"{relation[0]}{number}-{system}-{rank}",
                            ANSWER,
                            f"Barrel {number} leaked{word} {target}.",
                            relation,
                            source,
                            target,
                            of=(Credit(system, rank, rank),),
                        )
                    )
            for label in (RIGHT, WRONG) if gold else ():
                statement = f"Barrel {number} leaked{word} it was {label}."
                items.append(
                    Item(f"{relation[0]}{number}-{label}", GOLD, statement, relation, source, label, label=label)
                )
    items += [
        Item(f"check-{number}", CHECK, f"Please choose {number} here.", expected=(number,))
        for number in range(checks)
    ]
    return items
