"""Connections to DuckDB that can clean and compare sentences, and ask whether they are unsuitable."""

from pathlib import Path
from typing import Any

from cod3s.io import scan
from cod3s.unsuitable import PROFANITY, find_unsuitable

# `clean` does what cod3s.text.clean does; most text is already clean, which a cheap test detects.
# `bare` is what near-duplicates share: lower-case letters and digits; text without any is only like itself.
_MACROS = r"""
CREATE OR REPLACE MACRO clean(t) AS
  CASE WHEN regexp_full_match(t, '[!-~]+( [!-~]+)*') THEN t
  WHEN regexp_full_match(t, '[\p{Z}\p{Cc}\p{Cf}\p{Mn}\p{Me}]*') THEN ''
  ELSE trim(regexp_replace(nfc_normalize(t), '[\p{Z}\p{Cc}]+', ' ', 'g')) END;
CREATE OR REPLACE MACRO bare(t) AS
  CASE WHEN regexp_matches(t, '[\p{L}\p{M}\p{N}]')
  THEN regexp_replace(lower(t), '[^\p{L}\p{M}\p{N}]+', '', 'g') ELSE t END;
"""
BATCH_ROWS = 65_536  # read and written at a time


def connect(spill: Path | None = None, memory: str = "2GB") -> Any:
    """A connection of at most `memory`, which spills the rest to the folder `spill`."""
    connection = scan.connect(spill, memory)
    connection.execute(_MACROS)
    connection.create_function("unsuitable", _unsuitable, ["VARCHAR"], "VARCHAR")
    return connection


def _unsuitable(side: str) -> str:
    """Why a side is unsuitable, by the rules for answers: profanity, sensitive or nothing."""
    rule = find_unsuitable(side)
    if rule is None:
        return ""
    return "profanity" if rule.topic == PROFANITY else "sensitive"
