"""A task: one batch of sources on its way through the stages. Holds values and computes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from cod3s.decode.config import DecodeConfig
from cod3s.decode.systems import System

Given = Sequence[str]
"""The signatures that a user wants for one source, instead of stage 1."""


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
