"""What makes two pairs the same, and where a pair belongs. SQL macros for DuckDB; knows nothing about files.

A pair's key is the MD5 of the letters and digits of both sides, so it depends on the text alone: not on the
other pairs, the order of the files, the machine or a version. Its first 64 bits, the `place` of the pair, put
it on a line from 0 to 2^64; a fixed stretch of that line is dev, another test, the rest train.
"""

from dataclasses import dataclass

from cod3s.errors import UsageError

SPLITS = ("train", "dev", "test")
_END = 1 << 64

# `clean` is cod3s.text.clean in SQL; most text is clean already, and the cheap test skips the costly mending.
# `bare` is what near-duplicates share: small letters and digits; text that has none is only like itself.
MACROS = r"""
CREATE OR REPLACE MACRO clean(t) AS
  CASE WHEN regexp_full_match(t, '[!-~]+( [!-~]+)*') THEN t
  WHEN regexp_full_match(t, '[\p{Z}\p{Cc}\p{Cf}\p{Mn}\p{Me}]*') THEN ''
  ELSE trim(regexp_replace(nfc_normalize(t), '[\p{Z}\p{Cc}]+', ' ', 'g')) END;
CREATE OR REPLACE MACRO bare(t) AS
  CASE WHEN regexp_matches(t, '[\p{L}\p{M}\p{N}]')
  THEN regexp_replace(lower(t), '[^\p{L}\p{M}\p{N}]+', '', 'g') ELSE t END;
CREATE OR REPLACE MACRO text_hash(t) AS md5_number_upper(bare(t));
"""


@dataclass(frozen=True)
class HeldOut:
    """The stretches of the line that are kept from training: `share` of it for dev, as much for test.

    A share of 0 keeps nothing.
    """

    share: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 0.25:
            raise UsageError(f"a share of {self.share} cannot be held out", hint="choose from 0 to 0.25")

    def stretch(self, split: str) -> tuple[int, int]:
        """The first place of the split and the first place after it."""
        width = int(self.share * _END)
        ends = {"dev": (0, width), "test": (width, 2 * width), "train": (2 * width, _END)}
        return ends[split]
