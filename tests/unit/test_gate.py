"""The gate turns vectors into verdicts, keeps them in a bundle, and refuses what does not fit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from cod3s.errors import BundleError
from cod3s.trust.gate import FOLDER, KINDS, Gate, GateFacts, Verdict, open_gate, save_gate

ENCODER = "fast:model@1234"
FLOOR = 0.75
AXES = np.eye(4, dtype=np.float32)


def judge(gate: Gate, vectors: npt.NDArray[np.float32], *, sensitive: bool = False) -> list[Verdict]:
    return gate.judge(vectors, sensitive=sensitive, careful_floor=FLOOR)


@pytest.fixture
def gate() -> Gate:
    """A reference per axis: the first is harmless, the others are of the three sensitive kinds."""
    references = np.eye(4, dtype=np.float32)
    weights = np.full((4, 4), -5, np.float32)
    weights[0, 0] = -8
    weights[1:, 0] = 5
    weights[[1, 2, 3], [1, 2, 3]] = 5
    thresholds = {"harm": 0.5, "self-harm": 0.4}
    return Gate(GateFacts(ENCODER, 4.0, 0.2, thresholds, dict.fromkeys(KINDS, 0.0), {}), references, weights)


def test_each_kind_has_its_action(gate: Gate) -> None:
    verdicts = judge(gate, AXES)
    assert [verdict.kind for verdict in verdicts] == [*KINDS]
    assert [verdict.action for verdict in verdicts] == ["answer", "refuse", "refuse", "careful"]
    assert [verdict.floor for verdict in verdicts] == [0, 0, 0, FLOOR]
    assert verdicts[0].probability < 0.1
    assert verdicts[1].probability > 0.9


def test_remarks_say_what_happens_and_what_to_do(gate: Gate) -> None:
    harmless, harm, self_harm, grief = (verdict.remark for verdict in judge(gate, AXES))
    assert harmless == ""
    assert "violence" in harm
    assert "--sensitive" in harm
    assert "crisis line" in self_harm
    assert not any(character.isdigit() for character in self_harm), "numbers differ from country to country"
    assert "very plausible" in grief


def test_sensitive_sources_are_answered_on_demand_with_a_mark(gate: Gate) -> None:
    verdicts = judge(gate, AXES, sensitive=True)
    assert {verdict.action for verdict in verdicts} == {"answer"}
    assert [verdict.kind for verdict in verdicts] == [*KINDS], "the kind is still told"
    assert [bool(verdict.remark) for verdict in verdicts] == [False, True, True, True]


def test_a_batch_gets_the_verdicts_of_its_sources(gate: Gate) -> None:
    vectors = np.random.default_rng(1).normal(size=(20, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    together, alone = judge(gate, vectors), [judge(gate, vector)[0] for vector in vectors]
    assert [verdict.action for verdict in together] == [verdict.action for verdict in alone]
    assert judge(gate, np.zeros((0, 4), np.float32)) == []


def test_a_saved_gate_gives_the_same_verdicts(gate: Gate, tmp_path: Path) -> None:
    save_gate(gate, tmp_path / FOLDER)
    opened = open_gate(tmp_path, "inner:model@1234")  # another engine of the same model
    assert opened is not None
    assert judge(opened, AXES) == judge(gate, AXES)
    assert open_gate(tmp_path / "elsewhere", ENCODER) is None


def test_a_gate_that_does_not_fit_is_an_error_with_a_hint(gate: Gate, tmp_path: Path) -> None:
    save_gate(gate, tmp_path / FOLDER)
    with pytest.raises(BundleError, match="reads vectors of fast:model@1234, not of static:other"):
        open_gate(tmp_path, "static:other")
    save_gate(replace(gate, weights=gate.weights[:2]), tmp_path / FOLDER)
    with pytest.raises(BundleError, match="references but"):
        open_gate(tmp_path, ENCODER)
    (tmp_path / FOLDER / "gate.json").write_text("{}")
    with pytest.raises(BundleError, match="cannot be read") as caught:
        open_gate(tmp_path, ENCODER)
    assert "fit_gate" in caught.value.hint
