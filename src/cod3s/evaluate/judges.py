"""A bundle opened for evaluation: it generates, and it judges, with one encoder for both."""

from dataclasses import dataclass
from pathlib import Path

from cod3s.decode.generator import Generator, load
from cod3s.decode.players import Players, open_players
from cod3s.encode import Encoder, load_encoder
from cod3s.evaluate.evaluation import Judges
from cod3s.evaluate.generation import bundle_settings
from cod3s.evaluate.pairs import BundleLikelihoods
from cod3s.signatures import load_code
from cod3s.signatures.signer import open_encoder

NO_ENCODER = "none"
_REMEMBERED = 1_000_000  # hypotheses a model: systems and settings share their stages


@dataclass(frozen=True)
class Opened:
    """The generator of a bundle, its models by role, and the judges that it makes."""

    folder: Path
    generator: Generator
    players: Players
    judges: Judges


def open_bundle(folder: Path, second: str = "static") -> Opened:
    """The bundle in `folder`; `second` names an encoder that had no part in making the signatures."""
    # Without the generator's memory: what a judge computes must not depend on what was generated before.
    players = open_players(folder)
    encoder = open_encoder(players.facts.encoder)
    generator = load(folder, encoder=encoder, remember=_REMEMBERED)
    judges = Judges(
        encoder=encoder,
        second=open_second(second, encoder),
        code=load_code(folder / "code")[0],
        model=BundleLikelihoods(players),
        templates={name: own["template"] for name, own in players.facts.relations.items()},
        settings=bundle_settings(folder, generator),
    )
    return Opened(folder, generator, players, judges)


def open_second(name: str, first: Encoder) -> Encoder | None:
    """The second encoder; None for `none`, and where it is the first one again."""
    if name == NO_ENCODER:
        return None
    encoder = load_encoder(name)
    return None if encoder.id == first.id else encoder
