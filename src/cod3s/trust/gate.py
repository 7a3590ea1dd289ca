"""Notice sources that speak of violence, self-harm, death or illness, by their sentence vectors.

A source is compared with reference sentences; logistic regression weighs the similarities. `recipes/fit_gate.py`
learns the weights from `dataset/sensitive.tsv`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.errors import BundleError
from cod3s.io.arrays import load_array
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import read_json, replaced_file, write_json
from cod3s.logistic import logistic

Kind = Literal["none", "harm", "self-harm", "grief"]
Action = Literal["answer", "careful", "refuse"]
KINDS: tuple[Kind, ...] = ("none", "harm", "self-harm", "grief")
REFUSED: tuple[Kind, ...] = ("harm", "self-harm")

FOLDER = "gate"
"""The folder of the gate in a bundle."""
_FACTS, _REFERENCES, _WEIGHTS = "gate.json", "references.npy", "weights.npy"
_SCALE = 127  # unit vectors are kept as whole numbers from -127 to 127: a quarter of the size

_TOPICS: dict[Kind, str] = {
    "harm": "violence or abuse",
    "self-harm": "suicide or self-harm",
    "grief": "death or serious illness",
}
_REFUSED: dict[Kind, str] = {
    "harm": "this seems to be about violence or abuse, so no answers are shown; try another source, or "
    "--sensitive (sensitive=True) to see answers",
    "self-harm": "this seems to be about suicide or self-harm, so no answers are shown; if it is about you or "
    "somebody you know, please talk to a person you trust, a doctor, or a crisis line in your country; "
    "--sensitive (sensitive=True) shows answers",
}
_CAREFUL: dict[Kind, str] = {
    kind: f"this may be about {topic}, so only answers that are very plausible are shown"
    for kind, topic in _TOPICS.items()
}
_MARKED: dict[Kind, str] = {
    kind: f"this may be about {topic}; the answers are not checked, and they may hurt"
    for kind, topic in _TOPICS.items()
}
SOURCE_REMARKS = frozenset([*_REFUSED.values(), *_CAREFUL.values(), *_MARKED.values()])
"""All remarks of verdicts; they are about a single source."""


@dataclass(frozen=True)
class Verdict:
    """What a source speaks of, how probable it is that it is sensitive, and what to do.

    Sources about death or illness, and those that are sensitive perhaps, need care.

    `answer` as usual, `refuse` to answer, or be `careful`: show only answers of at least `floor`, and none that
    blames or laughs (`find_unsuitable(..., careful=True)`).
    """

    kind: Kind
    probability: float
    action: Action
    floor: float = 0.0
    remark: str = ""


ANSWERED = Verdict("none", 0.0, "answer")
"""The verdict where no gate is asked."""


@dataclass(frozen=True)
class GateFacts:
    """The content of gate.json."""

    encoder: str  # id of the encoder whose vectors it reads
    width: float  # similarities are exp(width * (cosine - 1))
    doubtful: float  # from this probability of anything sensitive on, care is taken
    thresholds: dict[str, float]  # kind → the probability from which on sources are refused
    biases: dict[str, float]  # kind → log-odds without any similar reference
    measured: dict[str, float]  # of the fit, for the reader


@dataclass(frozen=True)
class Gate:
    """The references, and the weight of each for each kind."""

    facts: GateFacts
    references: npt.NDArray[np.float32]  # (references, dim)
    weights: npt.NDArray[np.float32]  # (references, kinds)

    def log_odds(self, vectors: Vectors) -> npt.NDArray[np.float64]:
        """Of each source (sources, kinds): that it is sensitive at all, and that it is of each sensitive kind."""
        biases = np.array([self.facts.biases[kind] for kind in KINDS])
        similar = similarities(vectors, self.references, self.facts.width)
        result: npt.NDArray[np.float64] = (similar @ self.weights).astype(np.float64) + biases
        return result

    def judge(self, vectors: Vectors, *, sensitive: bool, careful_floor: float) -> list[Verdict]:
        """The verdict on each source, by the unit vectors (sources, dim) of their texts.

        With `sensitive`, all are answered and marked; `careful_floor` is the floor of a careful verdict.
        """
        rows = self.log_odds(np.asarray(vectors, np.float32).reshape(-1, self.references.shape[1]))
        probabilities = logistic(rows[:, 0]).tolist()
        kinds = [KINDS[1 + position] for position in rows[:, 1:].argmax(axis=1).tolist()]
        return [
            self._verdict(kind, probability, sensitive, careful_floor)
            for kind, probability in zip(kinds, probabilities, strict=True)
        ]

    def _verdict(self, kind: Kind, probability: float, sensitive: bool, careful_floor: float) -> Verdict:
        if probability < self.facts.doubtful:
            return Verdict("none", probability, "answer")
        if sensitive:
            return Verdict(kind, probability, "answer", remark=_MARKED[kind])
        if kind == "grief" or probability < self.facts.thresholds[kind]:
            return Verdict(kind, probability, "careful", careful_floor, _CAREFUL[kind])
        return Verdict(kind, probability, "refuse", remark=_REFUSED[kind])


def similarities(vectors: Vectors, references: Vectors, width: float) -> npt.NDArray[np.float32]:
    """How similar unit vectors are to the references, from 0 to 1: (vectors, references)."""
    result: npt.NDArray[np.float32] = np.exp(width * (vectors @ references.T - 1)).astype(np.float32)
    return result


def rounded(vectors: Vectors) -> Vectors:
    """Reference vectors as they are after they were saved and opened."""
    return (np.rint(vectors * _SCALE) / _SCALE).astype(np.float32)


def save_gate(gate: Gate, folder: Path) -> None:
    """Write the gate into `folder`, which belongs into a bundle as FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, npt.NDArray[Any]] = {
        _REFERENCES: np.rint(gate.references * _SCALE).astype(np.int8),
        _WEIGHTS: gate.weights,
    }
    for name, array in arrays.items():
        with replaced_file(folder / name) as partial, partial.open("wb") as stream:
            np.save(stream, array)
    write_json(folder / _FACTS, asdict(gate.facts))


def open_gate(bundle: Path, encoder: str) -> Gate | None:
    """The gate of a bundle whose sources are read with this encoder; None if the bundle has none."""
    folder = bundle / FOLDER
    if not folder.is_dir():
        return None
    hint = "copy the bundle again, or fit its gate with recipes/fit_gate.py"
    try:
        facts = parse_record(GateFacts, read_json(folder / _FACTS))
        references = load_array(folder / _REFERENCES, np.int8).astype(np.float32) / np.float32(_SCALE)
        weights = load_array(folder / _WEIGHTS, np.float32)
        _require_kinds(facts.thresholds, REFUSED)
        _require_kinds(facts.biases, KINDS)
    except (OSError, TypeError, ValueError) as error:
        raise BundleError(f"the gate in {folder} cannot be read: {error}", hint=hint) from error
    if references.ndim != 2 or weights.shape != (len(references), len(KINDS)):
        raise BundleError(
            f"the gate in {folder} has {references.shape} references but {weights.shape} weights", hint=hint
        )
    if _model(facts.encoder) != _model(encoder):
        raise BundleError(f"the gate in {folder} reads vectors of {facts.encoder}, not of {encoder}", hint=hint)
    return Gate(facts, references, weights)


def _require_kinds(values: Mapping[str, float], kinds: Sequence[str]) -> None:
    if missing := set(kinds) - set(values):
        raise ValueError(f"it says nothing of {', '.join(sorted(missing))}")


def _model(encoder: str) -> str:
    """The model of an encoder's id, whichever engine runs it."""
    return encoder.partition(":")[2]
