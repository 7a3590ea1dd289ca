"""A task: one batch of sources on its way through the stages."""

from collections.abc import Sequence
from dataclasses import dataclass

from cod3s.decode.config import DecodeConfig
from cod3s.decode.sources import Given
from cod3s.decode.systems import COD3S, System
from cod3s.errors import UsageError
from cod3s.text import for_modelling


@dataclass
class Task:
    """One batch on its way through the stages. `remarks` gathers what each source's reader should know."""

    relation: str
    system: System
    config: DecodeConfig
    texts: list[str]  # the sources as they were given, cleaned
    sources: list[str]  # the same in the form that models read
    given: list[Given | None]
    remarks: list[list[str]]


def make_task(
    batch: Sequence[tuple[str, Given | None]], relation: str, system: System, config: DecodeConfig
) -> Task:
    """The task of a batch of checked sources; signatures for a system of one stage are an error."""
    if system.kind != COD3S and any(given is not None for _, given in batch):
        raise UsageError(
            f"{system.name} writes in one stage and takes no signatures",
            hint="choose a system that begins with cod3s",
        )
    texts = [source for source, _ in batch]
    return Task(
        relation,
        system,
        config,
        texts,
        sources=[for_modelling(text) for text in texts],
        given=[given for _, given in batch],
        remarks=[[] for _ in batch],
    )
